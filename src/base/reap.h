#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <optional>

namespace kymo {

// Waits for a child that was killed: its wait status, and in `used`, where given, what it has used.
// Nothing where it has not ended within the time: the kernel ends no process that waits for a disk
// which does not answer. A thread of its own then waits on, so that no zombie is left.
// Threads: any; blocks for the time at most.
std::optional<int> reap_within(pid_t child, std::chrono::milliseconds time, rusage* used = nullptr);

}  // namespace kymo
