#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

namespace kymo {

// Waits until a child has ended, however long that takes. Returns its wait status; 0 if there is no
// such child.
int reap(pid_t child) noexcept;

// Waits for a child that was killed. Returns its wait status; `used`, if given, gets its resource
// usage. Returns nothing if the child has not ended within the time, since the kernel cannot end a
// process that waits for a disk which does not answer. A thread then reaps it later, so that no
// zombie is left.
// Threads: any; blocks for the time at most.
std::optional<int> reap_within(pid_t child, std::chrono::milliseconds time, rusage* used = nullptr);

// Whether a child has ended. It can still be reaped afterwards. True also if there is no such
// child.
bool has_ended(pid_t child);

// The exit code by which a shell passes on how its child ended: the child's own exit code, or 128 +
// N if signal N ended it.
int shell_exit_code(int wait_status);

// Says how a process ended, from its wait status: "exited with status 3", "was ended by signal 9
// (SIGKILL)".
std::string how_it_ended(int wait_status);

}  // namespace kymo
