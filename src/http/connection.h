#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "http/front_door.h"

namespace kymo::http {

// A connection whose request is there, and that is answered once.
//
// A client may make us wait three seconds, and one more for each 64 KiB that it has taken. Then it
// is cut off.
//
// Threads: one; cut() any.
class Connection {
 public:
  static constexpr int kMostLingering = 4;

  explicit Connection(Incoming incoming) : incoming_(std::move(incoming)) {}

  [[nodiscard]] const std::string& request() const { return incoming_.request; }
  // The HTTP status that refuses the request; 0: it can be read.
  [[nodiscard]] int refused() const { return incoming_.refused; }
  // Sends all of it. False: the client has gone, or took nothing for too long; from then on always.
  bool write(std::string_view data);
  // Ends the answer. Then reads for a moment what the client still sends: closing with unread data
  // would destroy the answer. At most kMostLingering threads do so at a time.
  void finish();
  // Makes every later write fail.
  void cut();

 private:
  bool wait_to_write();
  void read_on() const;

  Incoming incoming_;
  std::size_t written_ = 0;  // bytes
  std::chrono::nanoseconds waited_{0};
  bool open_ = true;
};

}  // namespace kymo::http
