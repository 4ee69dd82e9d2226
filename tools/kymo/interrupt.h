#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/file.h"
#include "client/client.h"

namespace kymo::cli {

// The exit code of a command that Ctrl-C ended, as the shell has it.
constexpr int kInterrupted = 130;

// What Ctrl-C does while a dump or restore runs: the first asks kymod to cancel it, and the answer
// is waited for; a second leaves at once, and the request goes on.
//
// Threads: one of its own, which waits for the signal. One at a time. Ownership: refers to the
// client.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt(client::Client& client, std::string request_id);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

  // Whether Ctrl-C asked for it.
  [[nodiscard]] bool asked() const { return asked_; }

 private:
  void wait();
  void ask();

  client::Client& client_;
  const std::string request_id_;
  FileDescriptor over_;  // readable: the request has ended
  std::atomic<bool> asked_{false};
  std::thread thread_;
};

}  // namespace kymo::cli
