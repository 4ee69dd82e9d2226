#pragma once

#include <cstdint>

#include "base/event.h"
#include "kymo/profiler.h"

namespace kymo {

// Waits for deadlines: the collector's sense of time.
//
// It sleeps until `margin` before the deadline and spins the rest. The margin is learned: a wake-up
// that comes after the deadline moves it up by one large step, each other one down by a small step,
// which settles it where one wake-up in kLateShare is late, so that no more is spun than precision
// asks for. Thrifty pace has no margin: it is late by the kernel's wake-up latency. An interval too
// short to sleep in is spun whole, whatever the pace.
//
// Deadlines are the caller's and absolute; nothing here is added up, so nothing drifts.
// Threads: one. Cost: a system call a wait where it sleeps, else a reading of the clock.
class Pacer {
 public:
  // `stop` ends a sleep early; the pacer is its one waiter.
  Pacer(std::uint64_t interval_ns, Pace pace, Event& stop);

  enum class Woken : std::uint8_t { deadline, stopped };
  // Returns when the clock has reached `deadline_ns` (CLOCK_MONOTONIC) or `stop` was signalled;
  // *now_ns is the clock's last reading, at or past the deadline in the first case; or the clock
  // went back (a restore under another clock), and it lies before an earlier reading. A deadline
  // that is more than an interval off is such a case: no tick is.
  Woken wait_for(std::uint64_t deadline_ns, std::uint64_t* now_ns) noexcept;

  // Asks the kernel for the least timer slack (else 50 us) and the shortest scheduling slice for
  // the calling thread: it then runs within microseconds of a deadline also beside busy threads.
  static void sharpen_this_thread() noexcept;

 private:
  [[nodiscard]] Woken sleep_until(std::uint64_t wake_ns, std::uint64_t* now_ns) noexcept;
  void learn(std::uint64_t late_ns) noexcept;

  std::uint64_t interval_ns_;
  bool sleeps_;
  std::uint64_t max_margin_ns_;
  std::uint64_t margin_ns_;
  Event& stop_;
};

}  // namespace kymo
