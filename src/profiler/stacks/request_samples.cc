#include "profiler/stacks/request_samples.h"

#include <algorithm>
#include <utility>

namespace kymo::stacks {
namespace {

// The name of the phase that has this instant. There is at least one phase, and they are in the
// order of time.
const std::string& phase_at(const std::vector<PhaseTimes>& phases, std::uint64_t time_ns) {
  const auto after = std::upper_bound(
      phases.begin(), phases.end(), time_ns,
      [](std::uint64_t time, const PhaseTimes& phase) { return time < phase.begin_ns; });
  return (after == phases.begin() ? after : after - 1)->name;
}

}  // namespace

void RequestSamples::add(Trace trace, std::uint64_t time_ns) {
  if (count_ >= kMaxSamples) {
    ++left_out_;
    return;
  }
  ++count_;
  times_[std::move(trace)].push_back(time_ns);
}

void RequestSamples::move_to(Profile& profile, const std::vector<PhaseTimes>& phases) {
  profile.counts.lost += left_out_;
  for (const PhaseTimes& phase : phases) {
    const std::vector<std::string>& names = profile.phases;
    if (std::find(names.begin(), names.end(), phase.name) == names.end()) {
      profile.phases.push_back(phase.name);
    }
  }
  for (auto& [trace, times] : times_) {
    for (const std::uint64_t time_ns : times) {
      Trace in_phase = trace;
      if (!phases.empty()) in_phase.phase = phase_at(phases, time_ns);
      Weight& weight = profile.traces[std::move(in_phase)];
      weight.samples += 1;
      weight.value += profile.period_ns;
    }
  }
  times_.clear();
  count_ = 0;
}

}  // namespace kymo::stacks
