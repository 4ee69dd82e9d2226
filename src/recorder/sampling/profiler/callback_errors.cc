#include "recorder/sampling/profiler/callback_errors.h"

#include <algorithm>

#include "recorder/metrics/registry_access.h"

namespace kymo {

CallbackErrors::CallbackErrors(const Registry& registry, const std::vector<Column>& columns)
    : all_(RegistryAccess::errors_of_callbacks(registry)),
      all_before_(all_->load(std::memory_order_relaxed)),
      registry_(registry) {
  for (const Column& column : columns) {
    recorded_.insert(column.metric->name);
  }
  for (const CallbackError& error : registry.callback_errors()) {
    before_[{error.metric, error.negative}] = error.count;
  }
}

std::vector<CallbackError> CallbackErrors::since_begin(const Registry& registry) const {
  std::vector<CallbackError> errors = registry.callback_errors();
  for (CallbackError& error : errors) {
    const auto earlier = before_.find({error.metric, error.negative});
    error.count -= earlier == before_.end() ? 0 : earlier->second;
  }
  std::erase_if(errors, [this](const CallbackError& error) {
    return error.count == 0 || !recorded_.contains(error.metric);
  });
  return errors;
}

std::vector<CallbackError> CallbackErrors::get() const {
  if (all_->load(std::memory_order_relaxed) == all_before_) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return registry_ ? since_begin(*registry_) : final_;
}

void CallbackErrors::finish() {
  const std::lock_guard lock(mutex_);
  if (registry_) {
    final_ = since_begin(*registry_);
    registry_.reset();
  }
}

std::string text_of(const CallbackError& error) {
  const std::string times =
      std::to_string(error.count) + (error.count == 1 ? " time" : " times") + ", the last time: ";
  if (error.negative) {
    return "values of metric '" + error.metric +
           "' are probably negative: they were 2^63 or more " + times + error.what +
           "; for a value below zero, record its distance from a fixed lowest value";
  }
  return "metric '" + error.metric + "': its callback has thrown " + times + error.what +
         (error.no_value ? "; it has never returned a value, so its columns are 0"
                         : "; its columns kept their last values meanwhile");
}

std::string text_of_unrecorded(const std::vector<std::string>& metrics) {
  constexpr std::size_t kShown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(metrics.size(), kShown); ++i) {
    names += (i == 0 ? "" : ", ") + metrics[i];
  }
  if (metrics.size() > kShown) {
    names += " and " + std::to_string(metrics.size() - kShown) + " more";
  }
  return "not recorded, because registered after the recorder was started: " + names;
}

}  // namespace kymo
