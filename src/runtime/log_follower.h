#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::runtime {

// Tells which notifications a CRIU passes that somebody else has started, out of its log as it
// grows: CRIU writes a line before each.
//
// Threads:   one of its own, which calls `notified`, and not after finish().
// Ownership: the destructor ends the thread.
// Cost:      a read a millisecond; the log may not exist yet.
class LogFollower {
 public:
  using Notified = std::function<void(std::string_view notification)>;

  LogFollower(std::string log_path, Notified notified);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Ends the following; everything in the log by now has been told, unless its disk does not
  // answer: then the thread is left to itself.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too, which may outlive this
};

}  // namespace kymo::runtime
