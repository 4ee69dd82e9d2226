#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>

#include "base/file.h"

namespace kymo::probe {

// The threads of a process, one after the other, so that a process of many thousands can be looked at in small steps.
//
// Threads: one at a time.
// Cost:    a system call for about 40 threads, where threads_of() lists them all: about 1 us for each.
class ThreadList {
 public:
  // `root` replaces /proc in tests.
  explicit ThreadList(pid_t process, const std::string& root = "/proc");
  // The next one; 0: there is none any more. Threads that begin meanwhile may be missing.
  [[nodiscard]] pid_t next();
  // The errno for which it is not known whether there are more, for example because no descriptor is free; 0: none.
  [[nodiscard]] int error() const { return error_; }

 private:
  bool fill();

  FileDescriptor folder_;
  int error_ = 0;
  std::array<char, 1024> entries_{};
  std::size_t size_ = 0;
  std::size_t at_ = 0;
};

}  // namespace kymo::probe
