#pragma once

#include <string>

#include "diagnosis/verdict.h"

namespace kymo::daemon {

// What decides about kymod's part of the CPUs now. `proc` and `sys` replace /proc and /sys/fs/cgroup in tests.
diagnosis::Priority priority_here(const std::string& proc = "/proc",
                                  const std::string& sys = "/sys/fs/cgroup");

}  // namespace kymo::daemon
