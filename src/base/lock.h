#pragma once

#include <chrono>

namespace kymo {

// A process that is killed gives up its locks at once, but a child that it had just forked has them
// until it ends or calls exec. What restarts such a process waits this long for its locks.
inline constexpr std::chrono::milliseconds kLockPatience{2000};

// Takes the exclusive lock of an open file or folder (flock). If another process has it, waits for
// it up to `patience`. Returns 0, or the error's number: EWOULDBLOCK if another process still has
// it.
//
// Threads: any; blocks for at most `patience`.
// Cost:    a system call; then one each 10 ms.
int lock_within(int fd, std::chrono::milliseconds patience);

}  // namespace kymo
