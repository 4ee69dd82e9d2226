#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo {

// Both ends are closed on exec.
struct Pipe {
  FileDescriptor from;
  FileDescriptor to;
};

// Errors: the system's.
inline Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace kymo
