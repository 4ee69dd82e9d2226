#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::http {

// A socket that listens on the first address of HOST:PORT that can be bound. Port 0 means any free
// port.
// Errors: the cause for the last address; not_found: the host has no address.
Result<FileDescriptor> listen_on(const std::string& host, std::uint16_t port);

// The port of a listening socket.
Result<std::uint16_t> port_of(int listener);

// What a client sent on its connection.
struct Incoming {
  FileDescriptor connection;  // non-blocking
  std::string request;        // its head and its body
  int refused = 0;            // 0, or the HTTP status that refuses it before all of it is read
};

// Finds the end of a request as it comes in.
//
// HTTP ends a line with CR and LF. Some parsers also take a lone LF as the end of a line, and so
// see other headers than parsers that do not. Therefore a head with a lone LF or CR is refused. So
// is a header that continues on the next line, one whose name ends with a space, a Host that is
// not valid, and a header that occurs twice although it decides something.
class Framing {
 public:
  // `text`: everything that has come so far.
  // Cost:   only the new part of the head is examined.
  void read(std::string_view text);
  // The length of the request at the start of `text`, head and body. 0 if the head is not complete
  // or the request is refused.
  [[nodiscard]] std::size_t length() const { return length_; }
  // The HTTP status that refuses the request; 0: none.
  [[nodiscard]] int refused() const { return refused_; }

 private:
  void read_fields(std::string_view head);

  std::size_t seen_ = 0;  // bytes of the head that were read
  std::size_t length_ = 0;
  int refused_ = 0;
};

// Accepts connections and reads requests, on one thread for all of them. A client that is slow or
// sends without end takes a descriptor and 32 KiB for some seconds, but never a thread.
//
// At most kMaxWaiting connections may have an unfinished request. When one more comes, the oldest
// is closed, so that new clients can still connect. The highest kReserve descriptors of the process
// are left for its other work (half of all, if its limit is below 2 * kReserve).
//
// Threads:   open() and close() on one; `take` is called on the thread of this object.
// Ownership: `take` gets the connection.
// Errors:    an exception of `take`, or no memory, closes only the present connection.
class RequestReader {
 public:
  static constexpr std::size_t kMaxHead = 16384;
  static constexpr std::size_t kMaxBody = 16384;
  static constexpr std::size_t kMaxWaiting = 256;
  static constexpr int kReserve = 128;                         // descriptors
  static constexpr std::chrono::milliseconds kPatience{5000};  // from accept() to the last byte
  using Take = std::function<void(Incoming)>;

  RequestReader() = default;
  ~RequestReader() { close(); }
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Errors: no descriptor or no thread left.
  Result<void> open(FileDescriptor listener, Take take);
  // Stops accepting, and closes the connections whose request is unfinished.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Incoming incoming;
    Framing framing;
    Clock::time_point until;
  };

  void run();
  // Waits for events, and handles them. Returns false if close() was called.
  bool turn();
  void accept_all();
  // Reads what has come. Returns true if the request is unfinished and the connection must stay.
  bool read_more(Waiting& from);
  // Like read_more(), but may throw.
  bool read_and_take(Waiting& from);

  FileDescriptor listener_;
  FileDescriptor wake_;
  Take take_;
  std::list<Waiting> waiting_;  // the oldest first
  std::vector<pollfd> polled_;
  int end_of_ours_ = 0;  // HTTP uses only descriptors below this one
  Clock::time_point deaf_until_{};
  std::thread thread_;
};

}  // namespace kymo::http
