#pragma once

#include <atomic>
#include <cstdint>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "recorder/sampling/collect/recorder_counts.h"

namespace kymo {

// The profiler that records now, for a program that makes one profiler after another. The
// recorder's own metrics are registered once. They are read from the profiler that is set.
//
// Invariants:
//  1. A reader is counted from before it loads the pointer until it has read through it.
//  2. set() returns when it has seen no reader after its store. The store, the load and the counts
//     have one order (seq_cst), so a reader that set() does not see loads the new pointer.
//
// Threads:   set() one at a time; reading from any thread, also while set() runs.
// Ownership: refers to the profiler, which must stay until another one, or null, is set.
// Cost:      two locked additions for each value.
class CurrentProfiler {
 public:
  // As register_profiler_metrics(). This object must exist as long as the registry is used. Values
  // are 0 while no profiler is set.
  Result<void> register_metrics(Registry& registry);
  // Null: no profiler. When set() returns, nothing uses the profiler that was set before.
  void set(const Profiler* profiler);

 private:
  std::uint64_t read(std::uint64_t (*of)(const RecorderCounts&)) const;

  mutable std::atomic<std::uint32_t> readers_{0};
  std::atomic<const RecorderCounts*> counts_{nullptr};
};

}  // namespace kymo
