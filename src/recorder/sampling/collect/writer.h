#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/event.h"
#include "kymo/sink.h"
#include "recorder/sampling/collect/late_causes.h"
#include "recorder/sampling/collect/recorder_counts.h"
#include "recorder/sampling/ring/gap_queue.h"
#include "recorder/sampling/ring/ring.h"

namespace kymo {

OutputPosition position_of(const OutputPlace& place);

// What the sink said the last time that it began to refuse rows, and what it has lost since it
// accepted them.
// Threads: any; no thread waits while it holds the mutex.
class SinkError {
 public:
  void set_refusal(const std::string& why) {
    const std::lock_guard lock(mutex_);
    refusal_ = why;
    latest_ = why;
  }
  void set_lost(LostRows lost) {
    const std::lock_guard lock(mutex_);
    if (lost.text != lost_.text) {
      latest_ = lost.text;
    }
    lost_ = std::move(lost);
  }
  [[nodiscard]] std::string refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }
  [[nodiscard]] LostRows lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  // The newer one of both.
  [[nodiscard]] std::string latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

 private:
  mutable std::mutex mutex_;  // guards all members
  std::string refusal_;
  LostRows lost_;
  std::string latest_;
};

// The body of the writer thread: passes the contents of the ring and the gap queue to the sink.
//
// Rows that the sink refuses are counted as missed, listed as a gap and given up. The writer tries
// the next slot all the same, so recording resumes by itself when the sink accepts rows again. A
// gap is passed on before the rows that follow it, because the collector queues it before it hands
// over their slot. A sink that throws in write() has refused the rows. What it throws elsewhere is
// kept for error().
//
// Threads: run() on the writer's; collector_done() from the collector's, after its last hand-over.
class Writer {
 public:
  static constexpr std::uint64_t kProgressNs = 500'000'000;

  // Looks for full slots when it is woken, and at the latest `nap_ns` after the last look.
  Writer(std::uint64_t interval_ns, std::uint64_t nap_ns, Ring& ring, GapQueue& gaps,
         RecorderCounts::Written& counts, LateCauses& late_causes, Sink& sink,
         SinkError& sink_error, Event& wake, std::function<ProfilerStats()> stats);

  // Returns when the collector is done and everything that it handed over has been offered to the
  // sink.
  void run();
  void collector_done() noexcept;
  // The first exception of the sink's gap() or progress(). Call it when run() has returned.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void drain();
  void drain_gaps();
  // What the sink has lost, and whether the file of the ring is gone.
  [[nodiscard]] LostRows lost() const;
  void write_slot(const Ring::Slot& slot, const Rows& rows);
  // Gives up `rows` rows, those of the ticks first .. last.
  void refuse(std::uint64_t first, std::uint64_t last, std::size_t rows, const std::string& why);
  void close_refused_gap();
  void pass_on(const Gap& gap);
  void keep_error(const Result<void>& outcome);

  std::uint64_t interval_ns_;
  std::uint64_t nap_ns_;
  Ring& ring_;
  GapQueue& gaps_;
  RecorderCounts::Written& counts_;
  LateCauses& late_causes_;
  Sink& sink_;
  SinkError& sink_error_;
  Event& wake_;
  std::function<ProfilerStats()> stats_;
  std::atomic<bool> collector_done_{false};
  std::uint64_t last_tick_ = 0;  // of the newest row taken
  std::optional<Gap> refused_;   // rows that the sink refused, adjacent ones merged
  std::optional<Error> error_;
};

}  // namespace kymo
