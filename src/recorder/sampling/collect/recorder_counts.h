#pragma once

#include <cstdint>

#include "base/cache_line.h"
#include "kymo/sink.h"
#include "recorder/sampling/collect/owned_count.h"
#include "recorder/sampling/collect/pacer.h"
#include "recorder/sampling/collect/timing_histogram.h"

namespace kymo {

// The counts behind ProfilerStats. Each group has one writing thread and its own cache lines. Any
// thread may read.
struct RecorderCounts {
  // Only the collector writes these.
  struct alignas(kCacheLine) Collected {
    OwnedCount captured;
    OwnedCount on_time;
    OwnedCount missed_late;
    OwnedCount late_sample;  // of missed_late: the sample before lasted until after the tick
    OwnedCount missed_ring_full;
    OwnedCount missed_frozen;
    OwnedCount backoffs;
    OwnedCount backoff_ns;
    OwnedCount timing_error_ns;
    OwnedCount timing_error_max_ns;
    OwnedCount sample_window_ns;
    OwnedCount sample_window_max_ns;
    TimingHistogram timing_errors;
    PaceCounts pace;
    OwnedCount first_tick;         // the first that was due: those since then are counted
    OwnedCount realtime_given_up;  // thousandths of a CPU that it had used; 0: not given up
  };
  // Only the writer writes these.
  struct alignas(kCacheLine) Written {
    OwnedCount rows;
    OwnedCount missed_sink_error;
    OwnedCount bytes;
    // Parts of Collected::missed_late, by LateCauses.
    OwnedCount late_waited;
    OwnedCount late_sample;
    OwnedCount late_stolen;
    OwnedCount late_page_fault;
  };
  Collected collected;
  Written written;

  // Everything except the duration. While recording, some rows are captured but not yet written.
  [[nodiscard]] ProfilerStats snapshot() const {
    ProfilerStats s;
    s.rows_written = written.rows.get();
    s.missed_sink_error = written.missed_sink_error.get();
    s.bytes_written = written.bytes.get();
    s.rows_captured = collected.captured.get();
    s.rows_on_time = collected.on_time.get();
    s.missed_late = collected.missed_late.get();
    s.late_waited = written.late_waited.get();
    s.late_sample = written.late_sample.get();
    s.late_stolen = written.late_stolen.get();
    s.late_page_fault = written.late_page_fault.get();
    s.missed_ring_full = collected.missed_ring_full.get();
    s.missed_frozen = collected.missed_frozen.get();
    s.backoffs = collected.backoffs.get();
    s.backoff_ns = collected.backoff_ns.get();
    s.timing_error_ns = collected.timing_error_ns.get();
    s.timing_error_max_ns = collected.timing_error_max_ns.get();
    s.sample_window_ns = collected.sample_window_ns.get();
    s.sample_window_max_ns = collected.sample_window_max_ns.get();
    s.timing_error_p50_ns = collected.timing_errors.percentile(0.5);
    s.timing_error_p99_ns = collected.timing_errors.percentile(0.99);
    s.timing_error_p999_ns = collected.timing_errors.percentile(0.999);
    s.spin_ns = collected.pace.spin_ns.get();
    s.wakeup_latency_ns =
        collected.pace.wakeups.percentile(1 - 1.0 / static_cast<double>(Pacer::kLateShare));
    s.ticks_due = s.rows_captured + s.missed_late + s.missed_ring_full + s.missed_frozen;
    return s;
  }
};

}  // namespace kymo
