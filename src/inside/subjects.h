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
  [[nodiscard]] std::vector<pid_t> take_started() {
    const std::lock_guard lock(mutex_);
    return std::exchange(started_, {});
  }
  // A CRIU that another program has started.
  void found_criu(pid_t pid) {
    const std::lock_guard lock(mutex_);
    if (known_criu_.insert(pid).second) found_criu_.push_back(pid);
  }
  // The processes of CRIU that were found since the last call.
  [[nodiscard]] std::vector<pid_t> take_found_criu() {
    const std::lock_guard lock(mutex_);
    return std::exchange(found_criu_, {});
  }
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
  mutable std::mutex mutex_;
  pid_t target_ = 0;
  std::vector<pid_t> started_;
  std::vector<pid_t> found_criu_;
  std::set<pid_t> known_criu_;
};

}  // namespace kymo::inside
