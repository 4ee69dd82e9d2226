#pragma once

#include <cstdint>

#include "base/event.h"
#include "kymo/profiler.h"
#include "sampling/owned_count.h"
#include "sampling/timing_histogram.h"

namespace kymo {

// What precision costs and what it would take. The pacer's thread writes; any reads.
struct PaceCounts {
  OwnedCount spin_ns;       // spun before deadlines, whether slept before or not
  TimingHistogram wakeups;  // how long each wake-up came after the time asked for
};

// Waits for deadlines: the collector's sense of time.
//
// It sleeps until `margin` before the deadline and spins the rest. The margin is learned: a wake-up
// that comes after the deadline moves it up by one large step, each other one down by a small step,
// which settles it where one wake-up in kLateShare is late, so that no more is spun than precision
// asks for. Thrifty pace has no margin from 200 us on: it is late by the kernel's wake-up latency;
// below, that would be ticks, and its margin is up to 60 us and half an interval. An interval below
// 50 us is too short to sleep in and spun whole, whatever the pace. The margin is never longer than
// the share of the interval that may be spun, so that precision has a known price; where the
// wake-ups take longer, PaceCounts says by how much.
//
// Deadlines are the caller's and absolute; nothing here is added up, so nothing drifts.
// Threads: one. Cost: a system call a wait where it sleeps, else a reading of the clock.
class Pacer {
 public:
  // A margin that is late once in this many wake-ups is right.
  static constexpr std::uint64_t kLateShare = 128;

  // `stop` ends a sleep early; the pacer is its one waiter.
  Pacer(std::uint64_t interval_ns, Pace pace, double max_spin_share, PaceCounts& counts,
        Event& stop);

  // Whether such a pacer only ever sleeps: it may then have a real-time priority.
  static bool only_sleeps(std::uint64_t interval_ns, Pace pace);

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
  void learn(std::uint64_t wake_ns, std::uint64_t now_ns) noexcept;

  std::uint64_t interval_ns_;
  bool sleeps_;
  std::uint64_t max_margin_ns_;
  std::uint64_t margin_ns_;
  PaceCounts& counts_;
  Event& stop_;
};

}  // namespace kymo
