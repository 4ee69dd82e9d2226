#pragma once

#include <sys/types.h>

#include <cstdint>

#include "checkpoint/runtimes/process/reaper.h"

namespace kymo::runtime {

// The time in which a CRIU ran, in the unit of probe::Process::start_ticks.
class TimeOfCriu {
 public:
  TimeOfCriu() : begin_(now()) {}
  void ended() { end_ = now(); }
  [[nodiscard]] bool contains(std::uint64_t ticks) const {
    return begin_ <= ticks && ticks <= end_;
  }

 private:
  static std::uint64_t now();
  std::uint64_t begin_;
  std::uint64_t end_ = UINT64_MAX;
};

// Kills what a failed restore may have left: the root process and its descendants. The root's pid
// was free when the restore began, and no other restore could use it since. But another child of
// this process may have got this pid: it began after CRIU had ended, or the reaper knows it, and is
// not touched. Returns true if the caller must reap the root.
//
// Blocks for at most a second, while a process cannot be looked at, for example for lack of a
// descriptor.
bool kill_half_restored(pid_t root, const TimeOfCriu& time, Reaper& reaper);

}  // namespace kymo::runtime
