#pragma once

#include <atomic>
#include <cstdint>

namespace kymo {

// Wakes one waiting thread, with a deadline on CLOCK_MONOTONIC. What std::atomic::wait lacks is the
// deadline; what a condition variable lacks is a signal that costs one instruction while nobody
// waits.
//
// A signal is remembered until the next wait, and several are one.
// Threads: signal() from any; wait_until() from one thread at a time. Neither throws.
// Cost:    signal() one exchange, and a system call only when the waiter sleeps.
class Event {
 public:
  void signal() noexcept;
  // True when signalled, false when the deadline came first.
  [[nodiscard]] bool wait_until(std::uint64_t deadline_monotonic_ns) noexcept;
  // True when signalled, without waiting. The waiter's, like wait_until().
  [[nodiscard]] bool poll() noexcept {
    return state_.load(std::memory_order_relaxed) == kSignalled &&
           state_.exchange(kIdle, std::memory_order_acq_rel) == kSignalled;
  }

 private:
  static constexpr std::uint32_t kIdle = 0;
  static constexpr std::uint32_t kSignalled = 1;
  static constexpr std::uint32_t kWaiting = 2;

  std::atomic<std::uint32_t> state_{kIdle};
};

}  // namespace kymo
