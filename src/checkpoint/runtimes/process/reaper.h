#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Reaps the children that it is given when they end, so that no zombie keeps a pid.
//
// Threads:   every member from any thread. The reaper's own thread calls `ended`, while the process
//            is still a zombie.
// Ownership: the destructor ends the thread and does not touch the children.
// Errors:    of watch(): no descriptor is free, or the process is gone.
class Reaper {
 public:
  using Ended = std::function<void(const ProcessId& process, int wait_status)>;

  static Result<std::unique_ptr<Reaper>> start(Ended ended);
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Precondition: `child` is a child of this process, and no other code waits for it. Must not be
  // called from `ended`.
  Result<void> watch(const ProcessId& child);
  // Whether watch() was called for the process with this pid, and it has not been reaped yet.
  bool watches(pid_t pid);
  // Waits until the process with this pid has been reaped, after `ended` has returned. Returns true
  // at once if the pid is not watched, and false at the timeout.
  bool wait_reaped(pid_t pid, std::chrono::milliseconds timeout);

 private:
  struct State;
  explicit Reaper(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::runtime
