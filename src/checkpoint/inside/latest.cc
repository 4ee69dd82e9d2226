#include "checkpoint/inside/latest.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "checkpoint/inside/sources.h"

namespace kymo::inside {

Latest::Latest(std::vector<std::unique_ptr<Source>> sources, std::chrono::nanoseconds interval)
    : sampler_(std::move(sources)) {
  values_ = sampler_.values();
  sampler_.start(interval, [this](auto values) {
    const std::lock_guard lock(mutex_);
    values_.assign(values.begin(), values.end());
  });
}

std::vector<std::uint64_t> Latest::values() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> values = values_;
  const std::uint64_t now_ns = monotonic_ns();
  for (std::size_t i = sampler_.ages(); i < values.size(); ++i) {
    values[i] = now_ns - std::min(now_ns, values[i]);
  }
  return values;
}

// The callbacks run in the order of registration.
Result<void> Latest::add_to(Registry& registry) {
  for (std::size_t i = 0; i < columns().size(); ++i) {
    const auto read = [this, i] {
      if (i == 0) row_ = values();
      return row_[i];
    };
    if (Result<void> added = registry.callback(columns()[i], read); !added) return added;
  }
  return {};
}

std::vector<std::unique_ptr<Source>> sources_of_process(pid_t pid) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(make_target_source(pid));
  sources.push_back(make_machine_source());
  return sources;
}

}  // namespace kymo::inside
