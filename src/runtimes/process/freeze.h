#pragma once

#include <string>

#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Freezes a process and its descendants, and lets them go on; returns how.
//
// On cgroup version 1 they get a freezer of their own below the one that they are in, and leave it
// again. On version 2, where a cgroup has more to it than freezing, theirs is frozen if nobody else
// is in it. Else they are stopped by SIGSTOP, which they, or their parents, may notice.
//
// `proc` and `sys` stand in for /proc and /sys/fs/cgroup in tests.
Result<std::string> freeze_process(const ProcessId& process, const std::string& proc = "/proc",
                                   const std::string& sys = "/sys/fs/cgroup");
Result<std::string> unfreeze_process(const ProcessId& process, const std::string& proc = "/proc",
                                     const std::string& sys = "/sys/fs/cgroup");

}  // namespace kymo::runtime
