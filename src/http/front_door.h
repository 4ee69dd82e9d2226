#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

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
  bool cut = false;           // longer than is read; `request` is the beginning
};

// Accepts connections and reads requests, on one thread for all: a client that dawdles, or sends
// without end, costs a descriptor and 32 KiB for some seconds, and never a thread.
//
// Of what waits for its request to be whole there are at most kMostWaiting: one more, and the one
// that has waited longest is let go of. Whoever asks for something at once is so always heard. The
// last of the process' descriptors are kept for what else it does.
//
// Threads:   open() and close() on one; `take` is called on the door's own.
// Ownership: `take` gets the connection.
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
    Clock::time_point until;
  };

  void run();
  void accept_all();
  // Reads what there is. True: it waits for more.
  bool read_more(Waiting& from);

  FileDescriptor listener_;
  FileDescriptor wake_;
  Take take_;
  std::list<Waiting> waiting_;  // the longest first
  int end_of_ours_ = 0;         // descriptors from this one on are kept for others
  Clock::time_point deaf_until_{};
  std::thread thread_;
};

// How long a request that begins so is, by its head; 0: that is not whole yet, or longer than is
// read. A body that does not
// tell its length counts as none, and more than is read as some length that is more. Cost: that of
// the head.
std::size_t request_length(std::string_view text);

}  // namespace kymo::http
