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

// A socket that listens on the first address of HOST:PORT that can be had; port 0: any free one.
// Errors: the last address' cause; not_found: the host has no address.
Result<FileDescriptor> listen_on(const std::string& host, std::uint16_t port);

// The port of a listening socket.
Result<std::uint16_t> port_of(int listener);

// What a client sent on its connection.
struct Incoming {
  FileDescriptor connection;  // does not block
  std::string request;        // its head and its body
  int refused = 0;            // the HTTP status that refuses it, before all of it is read; 0: none
};

// Finds the end of a request as it comes in.
//
// HTTP ends a line with CR and LF. A parser that takes a lone LF for an end, too, sees other
// headers than one that does not. So a head with a lone LF or CR is refused.
class Framing {
 public:
  // `text`: everything that has come so far. Cost: that of what is new in the head.
  void read(std::string_view text);
  // The length of the request that `text` begins with, head and body. 0: the head is not complete,
  // or is too long.
  [[nodiscard]] std::size_t length() const { return length_; }
  // The HTTP status that refuses the request; 0: none.
  [[nodiscard]] int refused() const { return refused_; }

 private:
  void read_fields(std::string_view head);

  std::size_t seen_ = 0;  // bytes of the head that were read
  std::size_t length_ = 0;
  int refused_ = 0;
};

// Accepts connections and reads requests, on one thread for all: a client that dawdles, or sends
// without end, costs a descriptor and 32 KiB for some seconds, and never a thread.
//
// At most kMostWaiting connections may have an unfinished request. When one more comes, the oldest
// is closed, so that new clients still get in. The last of the process' descriptors are kept for
// what else it does.
//
// Threads:   open() and close() on one; `take` is called on the door's own.
// Ownership: `take` gets the connection.
// Errors:    an exception of `take`, or no memory, closes the connection at hand and no other.
class FrontDoor {
 public:
  static constexpr std::size_t kLongestHead = 16384;
  static constexpr std::size_t kLongestBody = 16384;
  static constexpr std::size_t kMostWaiting = 256;
  static constexpr int kReserve = 128;                         // descriptors
  static constexpr std::chrono::milliseconds kPatience{5000};  // from accept() to the last byte
  using Take = std::function<void(Incoming)>;

  FrontDoor() = default;
  ~FrontDoor() { close(); }
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // Errors: no descriptor or no thread left.
  Result<void> open(FileDescriptor listener, Take take);
  // Nobody comes in any more, and who waits is let go of.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Incoming incoming;
    Framing framing;
    Clock::time_point until;
  };

  void run();
  // Waits for something to do, and does it. False: close() was called.
  bool turn();
  void accept_all();
  // Reads what there is. True: it waits for more.
  bool read_more(Waiting& from);
  // The same; may throw.
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
