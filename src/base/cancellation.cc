#include "base/cancellation.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace kymo {

Cancellation::Cancellation() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Cancellation::ask() noexcept {
  // Pairs with the acquire in asked(): a thread that sees true also sees what was written before.
  asked_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  while (event_.valid() && write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace kymo
