#pragma once

#include <cstdint>

#include "base/event.h"
#include "kymo/profiler.h"

namespace kymo {

// Waits for deadlines: the collector's sense of time.
//
// It sleeps until shortly before the deadline and spins the rest. How shortly, it learns: the
// margin moves up by a large step when a wake-up came later than the margin and down by a small one
// when it came earlier, which settles where one wake-up in kLateShare is late. Thrifty pace spins
// nothing and is late by the kernel's wake-up latency, unless the interval is too short to be slept
// at all.
//
// Deadlines are the caller's and absolute; nothing here is added up, so nothing drifts.
// Threads: one. Cost: a system call a wait where it sleeps.
class Pacer {
 public:
  // `stop` ends a sleep early; the pacer is its one waiter.
  Pacer(std::uint64_t interval_ns, Pace pace, Event& stop);

  enum class Woken : std::uint8_t { deadline, stopped };
  // Returns when the clock has reached `deadline_ns` (CLOCK_MONOTONIC) or `stop` was signalled;
  // *now_ns is the clock's last reading, at or past the deadline in the first case.
  Woken wait_for(std::uint64_t deadline_ns, std::uint64_t* now_ns) noexcept;

  // Asks the kernel for the least timer slack (else 50 us) and the shortest scheduling slice for
  // the calling thread: it then runs within microseconds of a deadline also beside busy threads.
  static void sharpen_this_thread() noexcept;

 private:
  void learn(std::uint64_t late_ns) noexcept;

  std::uint64_t max_margin_ns_;
  std::uint64_t margin_ns_;
  Event& stop_;
};

}  // namespace kymo
