#include "base/cancellation.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace kymo {

Cancellation::Cancellation() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Cancellation::ask(const char* why) noexcept {
  // Pairs with the acquire in why(): a thread that sees it also sees what was written before.
  const char* none = nullptr;
  why_.compare_exchange_strong(none, why, std::memory_order_release, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  while (event_.valid() && write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace kymo
