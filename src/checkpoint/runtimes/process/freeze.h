#pragma once

#include <string>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Freeze a process and its descendants, and unfreeze them. Each returns one line that says how.
//
// On cgroup version 1 the processes move into a new freezer cgroup below their present one, and
// move back when they are unfrozen. On version 2 a new cgroup would change more than freezing. So
// their present cgroup is frozen if no other process is in it. Otherwise they get SIGSTOP, which
// they or their parents may notice.
//
// Tests pass other folders as `proc` and `sys`.
Result<std::string> freeze_process(const ProcessId& process, const std::string& proc = "/proc",
                                   const std::string& sys = "/sys/fs/cgroup");
Result<std::string> unfreeze_process(const ProcessId& process, const std::string& proc = "/proc",
                                     const std::string& sys = "/sys/fs/cgroup");

}  // namespace kymo::runtime
