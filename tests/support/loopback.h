#pragma once

#include <cstdint>

#include "base/file.h"

namespace kymo::test {

// A socket that listens on a free port of 127.0.0.1. The test fails if it cannot.
struct Listener {
  explicit Listener(int backlog = 16);

  FileDescriptor socket;
  std::uint16_t port = 0;
};

// Connects to this port of 127.0.0.1. The test fails if it cannot. `receive_buffer`, if it is not 0, is the size of the
// socket's receive buffer in bytes.
FileDescriptor connect_to_loopback(int port, int receive_buffer = 0);

}  // namespace kymo::test
