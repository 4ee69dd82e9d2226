#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/file.h"
#include "support/loopback.h"

namespace kymo::test {

// A TCP server on a free port of 127.0.0.1, with its own thread, that sends back what it receives. A
// process that is dumped with a connection is connected to it.
class EchoServer {
 public:
  EchoServer();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  [[nodiscard]] int port() const { return listener_.port; }
  // The number of connections that were made so far.
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve();

  Listener listener_;
  FileDescriptor stop_;  // an eventfd(2)
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace kymo::test
