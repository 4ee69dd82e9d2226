#include "base/event.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

namespace kymo {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "futex needs the word");

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* deadline) {
  return ::syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, deadline, nullptr,
                   FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void Event::signal() noexcept {
  // The release pairs with the acquire of the exchange in wait_until(): the waiter sees what this
  // thread did before.
  if (state_.exchange(kSignalled, std::memory_order_acq_rel) == kWaiting) {
    futex(&state_, FUTEX_WAKE_BITSET, 1, nullptr);
  }
}

bool Event::wait_until(std::uint64_t deadline_monotonic_ns) noexcept {
  std::uint32_t expected = kIdle;
  if (state_.compare_exchange_strong(expected, kWaiting, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
    const timespec deadline{static_cast<time_t>(deadline_monotonic_ns / kNanosPerSecond),
                            static_cast<long>(deadline_monotonic_ns % kNanosPerSecond)};
    // FUTEX_WAIT_BITSET takes an absolute deadline on CLOCK_MONOTONIC. A spurious return (EINTR) is
    // treated like the deadline, because callers look at the clock anyway.
    futex(&state_, FUTEX_WAIT_BITSET, kWaiting, &deadline);
  }
  return state_.exchange(kIdle, std::memory_order_acq_rel) == kSignalled;
}

}  // namespace kymo
