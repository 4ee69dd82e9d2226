#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::runtime {

// Reports the notifications of a CRIU that another program has started. It reads them from CRIU's
// log as it grows, because CRIU writes a line before each notification.
//
// Threads:   has its own thread, which calls `notified`, but not after finish() has returned.
// Ownership: the destructor ends the thread.
// Cost:      one read a millisecond. The log need not exist yet.
class LogFollower {
 public:
  using Notified = std::function<void(std::string_view notification)>;

  LogFollower(std::string log_path, Notified notified);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Reports what is in the log by now and ends the thread. If the disk of the log does not answer,
  // the rest is not reported, and the thread ends later by itself.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace kymo::runtime
