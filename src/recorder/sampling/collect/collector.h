#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/event.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "recorder/sampling/collect/hand_over_pace.h"
#include "recorder/sampling/collect/pacer.h"
#include "recorder/sampling/collect/recorder_counts.h"
#include "recorder/sampling/collect/standstill.h"
#include "recorder/sampling/collect/thread_setup.h"
#include "recorder/sampling/ring/gap_queue.h"
#include "recorder/sampling/ring/ring.h"

namespace kymo {

// The body of the collector thread: takes samples at the deadlines start + k * interval and puts
// them into the ring. The clock starts before the recording's files are opened. Ticks are due from
// begin() on.
//
// A tick is captured if its sample begins before the deadline of the next tick. If the collector
// wakes later than that, it takes the newest due tick, and the ticks before it are missed.
// Deadlines are computed from the start, never from the current time.
// If no slot is free, the collector backs off, each time twice as long, up to kMaxBackoffNs. The
// ticks that pass meanwhile are missed, too. After each step, captured + missed = due.
// Standstill tells whether a delay concerned the whole program, for example because it was
// checkpointed. If the program has another clock afterwards, the start moves with it.
//
// Threads: begin() and run() on the collector's thread; `stop` may be signalled from any.
class Collector {
 public:
  struct Options {
    std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC of tick 0
    std::uint64_t interval_ns = 0;
    std::uint64_t flush_ns = 0;  // age at which a slot is handed over
    Pace pace = Pace::thrifty;
    double max_spin_share = 0;
    double realtime_max_share = 1;
    int nice = 0;  // if it has no real-time priority
    HandOverPace hand_over;
  };
  static constexpr std::uint64_t kMaxBackoffNs = 100'000'000;
  // At the stop, the last sample waits at most this long for a slot, so that a slow writer costs no
  // row.
  static constexpr std::uint64_t kLastSampleWaitNs = 2'000'000'000;

  Collector(const Options& options, const Sampler& sampler, Ring& ring, GapQueue& gaps,
            RecorderCounts::Collected& counts, Event& stop, Event& writer,
            std::atomic<std::uint64_t>& start_ns);

  // Sets the first tick: every deadline from now on is due. Call it on the thread of run(), before
  // run().
  void begin();
  // Takes the row before the first tick, after begin() and before run(). It counts as the tick
  // whose deadline has just passed; as it waited for no deadline, it has no timing error.
  void take_first_sample();
  // Returns when `stop` was signalled and the last slot, which may be partly full, is handed over.
  void run();

 private:
  [[nodiscard]] std::uint64_t deadline_of(std::uint64_t tick) const {
    return options_.start_ns + tick * options_.interval_ns;
  }
  [[nodiscard]] std::uint64_t newest_due(std::uint64_t now_ns) const {
    return (now_ns - options_.start_ns) / options_.interval_ns;
  }
  // Counts the ticks tick_ .. end-1 as missed.
  void miss_until(std::uint64_t end, MissCause cause);
  void capture(std::uint64_t now_ns);
  // Called if the deadline of the next tick has passed already, or if the clocks have changed.
  void catch_up(std::uint64_t now_ns, bool clocks_changed);
  // `error_ns`: how much later than its deadline the sample begins.
  void sample_into_slot(std::uint64_t now_ns, std::uint64_t error_ns);
  // Counts the late ticks up to `end` that the last sample took.
  void count_late_by_sample(std::uint64_t end);
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

  std::uint64_t tick_ = 0;         // the next one to capture or miss
  std::uint64_t last_ns_ = 0;      // clock when the last sample began
  std::uint64_t last_end_ns_ = 0;  // clock when it ended
  std::uint64_t backoff_ns_ = 0;
  std::vector<std::uint64_t> row_;  // the sample, before it goes into the ring
  Ring::Slot slot_;
  bool holds_slot_ = false;
  std::size_t rows_in_slot_ = 0;
  std::uint32_t unsignalled_ = 0;  // slots handed over since the writer was last woken
  std::uint64_t slot_begun_ns_ = 0;
};

}  // namespace kymo
