#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/http/request_reader.h"

namespace kymo::http {

// A connection whose request has been read, and that gets one answer.
//
// While the answer is sent, the total time of waiting for the client is at most `patience` plus
// one second for each 64 KiB that the client has taken. Then the connection is closed.
//
// Threads: one; cut() from any.
class Connection {
 public:
  static constexpr int kMaxLingering = 4;

  explicit Connection(Incoming incoming,
                      std::chrono::milliseconds patience = std::chrono::seconds(3))
      : incoming_(std::move(incoming)), patience_(patience) {}

  [[nodiscard]] const std::string& request() const { return incoming_.request; }
  // The HTTP status that refuses the request; 0: it can be read.
  [[nodiscard]] int refused() const { return incoming_.refused; }
  // Sends all of `data`. Returns false if the client has gone or was too slow; all later calls then
  // return false, too.
  bool write(std::string_view data);
  // Ends the answer. If the request was refused before all of it was read, it then reads for a
  // moment what the client still sends: closing a connection with unread data would destroy the
  // answer. At most kMaxLingering threads do this at a time.
  void finish();
  // Makes every later write fail.
  void cut();

 private:
  bool wait_to_write();
  void read_on() const;

  Incoming incoming_;
  std::chrono::milliseconds patience_;
  std::size_t written_ = 0;  // bytes
  std::chrono::nanoseconds waited_{0};
  bool open_ = true;
};

}  // namespace kymo::http
