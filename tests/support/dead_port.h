#pragma once

#include <cstdint>

#include "base/file.h"

namespace kymo::test {

// A free port of 127.0.0.1 that nobody answers. If `connects`, the kernel accepts connections, and
// they get no answer. Otherwise connections are refused.
class DeadPort {
 public:
  explicit DeadPort(bool connects);
  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  FileDescriptor socket_;
  std::uint16_t number_ = 0;
};

}  // namespace kymo::test
