#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/spawn.h"

namespace kymo::inside {

// The programs that a request starts: CRIU, or the container runtime that starts CRIU. It listens
// to the thread that runs the request. Sources tell each other through it what they have found.
//
// Threads: any.
class Subjects : public SpawnListener {
 public:
  void spawned(pid_t pid) override {
    const std::lock_guard lock(mutex_);
    started_.push_back(pid);
  }
  // The programs that were started since the last call.
  [[nodiscard]] std::vector<pid_t> take_started() { return take(started_); }
  // A CRIU that another program has started.
  void found_criu(pid_t pid) {
    found(pid, found_criu_);
    const std::lock_guard lock(mutex_);
    if (criu_ == 0) criu_ = pid;
  }
  // A program that is or will start CRIU, of a runtime that another program has started.
  void found_runtime(pid_t pid) { found(pid, found_runtimes_); }
  // The first one; 0: none was found.
  [[nodiscard]] pid_t criu() const {
    const std::lock_guard lock(mutex_);
    return criu_;
  }
  // The processes that were found since the last call.
  [[nodiscard]] std::vector<pid_t> take_found_criu() { return take(found_criu_); }
  [[nodiscard]] std::vector<pid_t> take_found_runtimes() { return take(found_runtimes_); }
  // A process of the container that is restored.
  void found_target(pid_t pid) {
    const std::lock_guard lock(mutex_);
    if (target_ == 0) target_ = pid;
  }
  // The first one; 0: none was found yet.
  [[nodiscard]] pid_t target() const {
    const std::lock_guard lock(mutex_);
    return target_;
  }

 private:
  void found(pid_t pid, std::vector<pid_t>& list) {
    const std::lock_guard lock(mutex_);
    if (known_.insert(pid).second) list.push_back(pid);
  }
  std::vector<pid_t> take(std::vector<pid_t>& list) {
    const std::lock_guard lock(mutex_);
    return std::exchange(list, {});
  }

  mutable std::mutex mutex_;
  pid_t target_ = 0;
  pid_t criu_ = 0;
  std::vector<pid_t> started_;
  std::vector<pid_t> found_criu_;
  std::vector<pid_t> found_runtimes_;
  std::set<pid_t> known_;
};

}  // namespace kymo::inside
