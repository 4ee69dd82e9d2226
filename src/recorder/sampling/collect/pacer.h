#pragma once

#include <cstdint>

#include "base/event.h"
#include "kymo/profiler.h"
#include "recorder/sampling/collect/owned_count.h"
#include "recorder/sampling/collect/timing_histogram.h"

namespace kymo {

// What precision costs, and how much margin it would need. The pacer's thread writes; any thread
// reads.
struct PaceCounts {
  OwnedCount spin_ns;       // time spun before deadlines, with or without a sleep before
  TimingHistogram wakeups;  // how long each wake-up came after the time asked for
};

// Waits for the deadlines of the collector.
//
// It sleeps until `margin` before the deadline and spins the rest. It learns the margin: a wake-up
// that comes after the deadline increases the margin by one large step, every other wake-up
// decreases it by a small step. The margin settles where one wake-up in kLateShare is late, so that
// the pacer spins no more than precision needs.
// Thrifty pace has no margin if the interval is at least 200 us: it is late by the kernel's wake-up
// latency. Below 200 us, this latency would be whole ticks, so the margin is at most 60 us and at
// most half the interval. An interval below 50 us is too short for a sleep, so the pacer spins all
// the time, in any pace.
// In precise pace, the margin is never longer than the share of the interval that may be spun (or
// the margin of thrifty pace), so that the price of precision is known. If wake-ups take longer,
// PaceCounts says how long.
//
// The caller gives absolute deadlines. The pacer adds no times up, so nothing drifts.
//
// Threads: one.
// Cost:    a system call for each wait if it sleeps, else a read of the clock.
class Pacer {
 public:
  // The margin is right if one in this many wake-ups is late.
  static constexpr std::uint64_t kLateShare = 128;

  // `stop` ends a sleep early. Only the thread of the pacer waits for it.
  Pacer(std::uint64_t interval_ns, Pace pace, double max_spin_share, PaceCounts& counts,
        Event& stop);

  // The largest share of an interval that such a pacer spins: 0 to 1. It is more than
  // `max_spin_share` if the interval is so short that the share would not keep the ticks.
  static double spin_limit(std::uint64_t interval_ns, Pace pace, double max_spin_share);

  // Whether such a pacer only sleeps and never spins. Its thread may then have a real-time
  // priority.
  static bool only_sleeps(std::uint64_t interval_ns, Pace pace);

  enum class WakeReason : std::uint8_t { deadline, stopped };
  // Returns when the clock has reached `deadline_ns` (CLOCK_MONOTONIC), or when `stop` was
  // signalled. *now_ns is the last reading of the clock. If the deadline was reached, it is at or
  // past the deadline.
  // It also returns `deadline` if the clock went back (a restore under another clock). *now_ns is
  // then before an earlier reading. A deadline that is more than one interval away is treated like
  // this, because no tick is that far away.
  WakeReason wait_for(std::uint64_t deadline_ns, std::uint64_t* now_ns) noexcept;

  // Asks the kernel for the smallest timer slack (the default is 50 us) and the shortest scheduling
  // slice for the calling thread. The thread then runs within microseconds of a deadline, even
  // beside busy threads.
  static void reduce_wakeup_latency() noexcept;

 private:
  [[nodiscard]] WakeReason sleep_until(std::uint64_t wake_ns, std::uint64_t* now_ns) noexcept;
  void learn(std::uint64_t wake_ns, std::uint64_t now_ns) noexcept;

  std::uint64_t interval_ns_;
  bool sleeps_;
  std::uint64_t max_margin_ns_;
  std::uint64_t margin_ns_;
  PaceCounts& counts_;
  Event& stop_;
};

}  // namespace kymo
