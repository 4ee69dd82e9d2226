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
// Threads:   one of its own, which calls `notified`, and the last time finish()'s caller.
// Ownership: the destructor ends the thread.
// Cost:      a read a millisecond; the log may not exist yet.
class LogFollower {
 public:
  using Notified = std::function<void(std::string_view notification)>;

  LogFollower(std::string log_path, Notified notified);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Ends the following; everything in the log by now has been told.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo::runtime
