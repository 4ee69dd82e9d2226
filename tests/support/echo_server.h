#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::test {

// Sends back what it receives, on a port of 127.0.0.1, in a thread of its own. It is the peer of a process
// that is dumped with a connection.
class EchoServer {
 public:
  EchoServer();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // How many connections were made to it so far.
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve();

  FileDescriptor listener_;
  FileDescriptor stop_;  // an eventfd(2)
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace kymo::test
