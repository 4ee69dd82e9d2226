#pragma once

#include <atomic>
#include <cstdint>

namespace kymo {

// Lets one thread wait for a signal or a deadline on CLOCK_MONOTONIC. std::atomic::wait has no
// deadline. A condition variable has no signal that costs only one instruction if no thread waits.
//
// A signal is remembered until the next wait. Several signals before a wait count as one.
// Threads: signal() from any thread; wait_until() and poll() from one thread at a time.
// Errors:  none; no member throws.
// Cost:    signal() is one exchange, and a system call only if the waiter sleeps.
class Event {
 public:
  void signal() noexcept;
  // Returns true if signalled, false if the deadline came first.
  [[nodiscard]] bool wait_until(std::uint64_t deadline_monotonic_ns) noexcept;
  // Returns whether it was signalled, without waiting. Only for the thread that waits.
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
