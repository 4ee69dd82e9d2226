#pragma once

#include <atomic>
#include <cstdint>

#include "kymo/sink.h"

namespace kymo {

// One writer's count that other threads read.
class OwnedCount {
 public:
  void add(std::uint64_t n) noexcept { set(get() + n); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void raise_to(std::uint64_t value) noexcept {
    if (value > get()) {
      set(value);
    }
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// The counts behind ProfilerStats; each group has one writing thread and cache lines of its own.
struct RecorderCounts {
  struct alignas(64) Collected {
    OwnedCount captured;
    OwnedCount missed_late;
    OwnedCount missed_ring_full;
    OwnedCount backoffs;
    OwnedCount backoff_ns;
    OwnedCount timing_error_ns;
    OwnedCount timing_error_max_ns;
    OwnedCount sample_window_max_ns;
  };
  struct alignas(64) Written {
    OwnedCount rows;
    OwnedCount missed_sink_error;
    OwnedCount bytes;
  };
  Collected collected;
  Written written;

  // Everything but the duration. While recording, rows on their way are captured and not yet
  // written.
  [[nodiscard]] ProfilerStats snapshot() const {
    ProfilerStats s;
    s.rows_written = written.rows.get();
    s.missed_sink_error = written.missed_sink_error.get();
    s.bytes_written = written.bytes.get();
    s.rows_captured = collected.captured.get();
    s.missed_late = collected.missed_late.get();
    s.missed_ring_full = collected.missed_ring_full.get();
    s.backoffs = collected.backoffs.get();
    s.backoff_ns = collected.backoff_ns.get();
    s.timing_error_ns = collected.timing_error_ns.get();
    s.timing_error_max_ns = collected.timing_error_max_ns.get();
    s.sample_window_max_ns = collected.sample_window_max_ns.get();
    s.ticks_due = s.rows_captured + s.missed_late + s.missed_ring_full;
    return s;
  }
};

}  // namespace kymo
