#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/file.h"
#include "client/client.h"

namespace kymo::cli {

// The exit code of a command that Ctrl-C ended, as in a shell.
constexpr int kInterrupted = 130;

// Handles Ctrl-C while a dump or restore runs. The first Ctrl-C asks kymod to cancel the request
// and waits for the answer. The second one ends the program at once, and the request continues.
//
// Threads:   its own thread waits for the signal. Only one object may exist at a time.
// Ownership: refers to the client.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt(client::Client& client, std::string request_id);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

  // Whether Ctrl-C has asked kymod to cancel the request.
  [[nodiscard]] bool asked() const {
    return asked_.load(std::memory_order_relaxed);  // nothing else is read by it
  }

 private:
  void wait();
  void ask();

  client::Client& client_;
  const std::string request_id_;
  FileDescriptor over_;  // readable when the request has ended
  std::atomic<bool> asked_{false};
  std::thread thread_;
};

}  // namespace kymo::cli
