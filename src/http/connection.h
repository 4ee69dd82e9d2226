#pragma once

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "http/front_door.h"

namespace kymo::http {

// A connection whose request is there, as the HTTP library reads and writes it.
//
// A client may make us wait three seconds, and one more for each 64 KiB that it has taken. Then it
// is cut off.
//
// Threads: one; cut() any.
class Connection : public httplib::Stream {
 public:
  static constexpr int kMostLingering = 4;

  explicit Connection(Incoming incoming) : incoming_(std::move(incoming)) {}

  // The HTTP status that refuses the request; 0: the library answers it.
  [[nodiscard]] int refused() const { return incoming_.refused; }
  // Answers with that status and this JSON, without the library.
  void refuse(std::string_view body);
  // Ends the answer. Then reads for a moment what the client still sends: closing with unread data
  // would destroy the answer. At most kMostLingering threads do so at a time.
  void finish();
  // Makes every later read and write of it fail.
  void cut();

  [[nodiscard]] bool is_readable() const override { return read_ < incoming_.request.size(); }
  [[nodiscard]] bool is_writable() const override { return open_; }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // None: the library does not wait for it with select(), and refuses one above FD_SETSIZE.
  [[nodiscard]] socket_t socket() const override { return -1; }

 private:
  bool wait_to_write();
  void read_on() const;

  Incoming incoming_;
  std::size_t read_ = 0;     // of the request
  std::size_t written_ = 0;  // bytes
  std::chrono::nanoseconds waited_{0};
  bool open_ = true;
};

}  // namespace kymo::http
