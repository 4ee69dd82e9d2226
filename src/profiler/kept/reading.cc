#include "profiler/kept/reading.h"

#include <algorithm>
#include <utility>

#include "profiler/kept/sqlite_store.h"
#include "profiler/stacks/request_samples.h"

namespace kymo::profiles {

Result<std::unique_ptr<Store>> open_kept(const std::string& directory) {
  const std::string path = directory + "/" + SqliteStore::kFileName;
  auto opened = SqliteStore::open_to_read(path);
  if (opened) return std::unique_ptr<Store>(*std::move(opened));
  if (opened.error().code == Code::permission_denied) {
    return Error{Code::permission_denied,
                 "cannot read " + path +
                     ": profiles name what others run, so only root and the "
                     "user who runs kymod may read them"};
  }
  if (opened.error().code != Code::not_found) return opened.error();
  return Error{Code::not_found,
               "no profiles are kept in " + directory + ": there is no " + SqliteStore::kFileName};
}

Result<void> keep_comparable(stacks::NamedProfile& profile, const std::optional<Service>& service,
                             const std::string& name) {
  const bool divided = std::any_of(profile.stacks.begin(), profile.stacks.end(),
                                   [](const auto& stack) { return !stack.role.empty(); });
  if (!divided || !service) return {};
  const bool process = service->kind == Service::Kind::process;
  std::erase_if(profile.stacks, [&](const stacks::NamedProfile::Stack& stack) {
    return process ? service_of_process(stack.process) != *service
                   : stack.role != stacks::kTargetRole;
  });
  if (!profile.stacks.empty()) return {};
  return Error{Code::not_found,
               name + " has no stacks of " + (process ? text_of(*service) : "the target")};
}

Steps steps_of(const Range& range, std::int64_t most, const std::vector<MinuteTotal>& totals,
               const std::vector<CoveredMinute>& covered) {
  Steps steps;
  const std::int64_t minutes = range.end - range.begin;
  steps.minutes = std::max<std::int64_t>(1, (minutes + most - 1) / most);
  steps.steps.resize(static_cast<std::size_t>((minutes + steps.minutes - 1) / steps.minutes));
  const auto step_of = [&](std::int64_t minute) -> Step& {
    return steps.steps[static_cast<std::size_t>((minute - range.begin) / steps.minutes)];
  };
  for (const MinuteTotal& one : totals) step_of(one.minute).weight += one.weight;
  for (const CoveredMinute& one : covered) step_of(one.minute).covered_ns += one.covered_ns;
  return steps;
}

std::optional<Range> compared_range(const Range& shown, std::optional<std::int64_t> begin) {
  const std::int64_t length = shown.end - shown.begin;
  const std::int64_t from = begin.value_or(shown.begin - length);
  if (from < shown.begin) return Range{from, std::min(from + length, shown.begin)};
  if (from < shown.end) return std::nullopt;
  return Range{from, from + length};
}

}  // namespace kymo::profiles
