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
// A client may take its time over an answer, at 64 KiB a second at least once three seconds have
// been waited for it: one that stands still, or pretends to read, holds a thread for seconds.
//
// Threads: one; cut() any.
class Connection : public httplib::Stream {
 public:
  explicit Connection(Incoming incoming) : incoming_(std::move(incoming)) {}

  // Whether its head is longer than is read.
  [[nodiscard]] bool is_headless() const;
  // Answers that, without the library.
  void refuse_as_too_long(std::string_view body);
  // Nothing more is written. What the client still sends is read for a moment: a connection that is
  // closed before takes the answer with it.
  void finish();
  // Whoever reads or writes it is told that it is gone.
  void cut();

  [[nodiscard]] bool is_readable() const override { return read_ < incoming_.request.size(); }
  [[nodiscard]] bool is_writable() const override { return open_; }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return incoming_.connection.get(); }

 private:
  bool wait_to_write();

  Incoming incoming_;
  std::size_t read_ = 0;     // of the request
  std::size_t written_ = 0;  // bytes
  std::chrono::nanoseconds waited_{0};
  bool open_ = true;
};

}  // namespace kymo::http
