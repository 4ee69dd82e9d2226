#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/stacks/profile.h"

namespace kymo::stacks {

// The roles in a profile of a dump or restore.
inline constexpr const char* kCriuRole = "criu";
inline constexpr const char* kTargetRole = "target";

// A stretch of time of a dump or restore, on CLOCK_MONOTONIC.
struct PhaseTimes {
  std::string name;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// The stacks of a dump or restore with their instants: which phases there were is known at its end.
//
// Threads: one.
// Bounds:  kMaxSamples samples; those beyond are counted as lost.
class RequestSamples {
 public:
  static constexpr std::size_t kMaxSamples = std::size_t{1} << 22U;

  void add(Trace trace, std::uint64_t time_ns);
  // Moves all into the profile, which has no phases yet, each with the name of its phase. A sample
  // before the first phase has the name of that phase, and one after the last phase that of the
  // last one. If there are no phases, no sample has one.
  void move_to(Profile& profile, const std::vector<PhaseTimes>& phases);

 private:
  std::map<Trace, std::vector<std::uint64_t>> times_;
  std::size_t count_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace kymo::stacks
