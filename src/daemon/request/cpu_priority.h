#pragma once

#include <sys/types.h>

#include <string>

#include "checkpoint/diagnosis/verdict.h"

namespace kymo::daemon {

// What decides about a process's part of the CPUs now. `proc` and `sys` replace /proc and /sys/fs/cgroup in tests.
diagnosis::Priority priority_of(pid_t pid, const std::string& proc = "/proc",
                                const std::string& sys = "/sys/fs/cgroup");

// The tightest limit of CPU time of a process.
diagnosis::Quota quota_of(pid_t pid);

// The autogroup of a process. Empty if something else decides about its part, or if it has ended.
diagnosis::Autogroup autogroup_of(pid_t pid, const std::string& proc = "/proc",
                                  const std::string& sys = "/sys/fs/cgroup");

}  // namespace kymo::daemon
