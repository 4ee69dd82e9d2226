#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/event.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "sampling/gap_queue.h"
#include "sampling/hand_over_pace.h"
#include "sampling/pacer.h"
#include "sampling/recorder_counts.h"
#include "sampling/ring.h"
#include "sampling/standstill.h"
#include "sampling/thread_setup.h"

namespace kymo {

// Samples at deadlines start + k * interval into the ring: the collector thread's body. The clock
// starts before the recording's files are opened, and ticks are due from begin() on.
//
// The rule: a tick is captured when its sample begins before the next tick's deadline. The
// collector that wakes later takes the newest due tick, and those before it are missed. Deadlines
// come from the start, never from now. With no free slot it backs off, each time twice as long up
// to kMaxBackoff, and the ticks that pass meanwhile are missed too. captured + missed = due holds
// after each step. A lateness that is the whole program's (it was checkpointed, say) is told apart
// by Standstill; where the clock is another one afterwards, the start moves with it.
//
// Threads: begin() and run() on the collector's; `stop` may be signalled from any.
class Collector {
 public:
  struct Options {
    std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC of tick 0
    std::uint64_t interval_ns = 0;
    std::uint64_t flush_ns = 0;  // hand a slot over when this old
    Pace pace = Pace::thrifty;
    double max_spin_share = 0;
    double realtime_max_share = 1;
    int nice = 0;  // where it has no real-time priority
    HandOverPace hand_over;
  };
  static constexpr std::uint64_t kMaxBackoffNs = 100'000'000;
  // At the stop the last sample waits this long for a slot, so that a slow writer costs no row.
  static constexpr std::uint64_t kLastSampleWaitNs = 2'000'000'000;

  Collector(const Options& options, const Sampler& sampler, Ring& ring, GapQueue& gaps,
            RecorderCounts::Collected& counts, Event& stop, Event& writer,
            std::atomic<std::uint64_t>& start_ns);

  // Sets the first tick: every deadline from now on is due. On run()'s thread, before it.
  void begin();
  // Returns once `stop` was signalled and the last, partial slot is handed over.
  void run();

 private:
  [[nodiscard]] std::uint64_t deadline_of(std::uint64_t tick) const {
    return options_.start_ns + tick * options_.interval_ns;
  }
  [[nodiscard]] std::uint64_t newest_due(std::uint64_t now_ns) const {
    return (now_ns - options_.start_ns) / options_.interval_ns;
  }
  // Ticks tick_ .. end-1 leave no row.
  void miss_until(std::uint64_t end, MissCause cause);
  void capture(std::uint64_t now_ns);
  // A tick was overslept, or the clocks are not what they were.
  void catch_up(std::uint64_t now_ns, bool clocks_changed);
  void sample_into_slot(std::uint64_t now_ns);
  void back_off(std::uint64_t now_ns);
  void bound_realtime(std::uint64_t now_ns);
  void take_last_sample();
  [[nodiscard]] bool have_slot();
  void hand_over();

  Options options_;
  const Sampler& sampler_;
  Ring& ring_;
  GapQueue& gaps_;
  RecorderCounts::Collected& counts_;
  Event& stop_;
  Event& writer_;
  std::atomic<std::uint64_t>& start_ns_;  // options_.start_ns for other threads
  Pacer pacer_;
  RealtimeBound realtime_bound_;
  Standstill standstill_;

  std::uint64_t tick_ = 0;     // the next one to capture or miss
  std::uint64_t last_ns_ = 0;  // the clock when the last sample began
  std::uint64_t backoff_ns_ = 0;
  std::vector<std::uint64_t> row_;  // the sample, before it goes into the ring
  Ring::Slot slot_;
  bool holds_slot_ = false;
  std::size_t rows_in_slot_ = 0;
  std::uint32_t unsignalled_ = 0;  // slots handed over since the writer was last woken
  std::uint64_t slot_begun_ns_ = 0;
};

}  // namespace kymo
