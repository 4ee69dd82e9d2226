#pragma once

#include <cstdint>

#include "base/file.h"

namespace kymo::test {

// A free port of 127.0.0.1 that this test alone has, and from which nobody ever gets an answer:
// `connects`, connections are taken, by the kernel, and hang; else they are refused.
class DeadPort {
 public:
  explicit DeadPort(bool connects);
  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  FileDescriptor socket_;
  std::uint16_t number_ = 0;
};

}  // namespace kymo::test
