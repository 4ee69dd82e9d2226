#pragma once

#include <sys/types.h>

#include "kymo/result.h"

namespace kymo::criu {

// A process that keeps the processes of a dump stopped after CRIU was killed, until their TCP connections work again.
//
// CRIU reads a connection in repair mode (TCP_REPAIR), in which each send(2) fails with EPERM. If CRIU is killed, the
// kernel lets its processes run at once, and only then tells the parent of CRIU. So the parent always comes too late.
// The guard traces CRIU with PTRACE_O_TRACEEXIT. Then the kernel stops CRIU at the start of its exit, also after
// SIGKILL, and CRIU still traces its processes, which do not run. The guard ends their repair mode and lets CRIU go on
// with its exit.
//
// If the guard is killed, or if CRIU is traced already, CRIU works as without a guard. The guard outlives this program,
// and ends with CRIU.
//
// Threads:   one at a time.
// Ownership: owns the guard's process, which is a fork of this one. The destructor reaps it, or leaves this to a thread
//            if CRIU has not ended.
// Cost:      a fork, and a switch to the guard and back for each signal that CRIU gets.
class Guard {
 public:
  // `criu` may be about to execute its program. When the function returns, the guard traces it, unless it cannot.
  // Errors: the system's, if there is no process or descriptor for the guard.
  static Result<Guard> start(pid_t criu);
  ~Guard();
  // Lets a guard that somebody has stopped (SIGSTOP) work again: CRIU cannot end without it.
  void wake() const noexcept;
  Guard(Guard&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard& operator=(Guard&&) = delete;

 private:
  explicit Guard(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1: moved
};

}  // namespace kymo::criu
