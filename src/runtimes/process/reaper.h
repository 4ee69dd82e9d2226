#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>

#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Reaps given children when they end, so that no zombie keeps their pid.
//
// Threads:   every member from any thread; `ended` is called on the reaper's own, while the process
//            is a zombie still.
// Ownership: the destructor ends its thread and leaves the children alone.
// Errors:    watch(): no descriptor is left, or the process is gone.
class Reaper {
 public:
  using Ended = std::function<void(const ProcessId& process, int wait_status)>;

  static Result<std::unique_ptr<Reaper>> start(Ended ended);
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Precondition: a child of this process that nobody else waits for; not called from `ended`.
  Result<void> watch(const ProcessId& child);
  // Whether the process of this pid is one that watch() was told of, and is not reaped yet.
  bool watches(pid_t pid);
  // Waits until this pid is none of ours any more and `ended` has returned; true when it is so, at
  // once where it never was.
  bool wait_reaped(pid_t pid, std::chrono::milliseconds timeout);

 private:
  struct State;
  explicit Reaper(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::runtime
