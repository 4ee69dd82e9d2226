#pragma once

#include <atomic>
#include <cstdint>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "sampling/recorder_counts.h"

namespace kymo {

// The profiler that records now, of a program that makes one after the other: the recorder's own
// metrics are registered once, and read whichever is set.
//
// Invariants: 1. A reader is counted before it loads the pointer, until it has read through it.
//             2. set() returns when it has seen no reader after its store. Store, load and counts
//                have one order (seq_cst): a reader that is not seen loads what was stored.
// Threads:    set() one at a time; reading from any thread, also while it runs.
// Ownership:  refers to the profiler, which must stay until another is set, or none.
// Cost:       two locked additions a value.
class CurrentProfiler {
 public:
  // As register_profiler_metrics(); this must outlive the registry's use. Values are 0 while none
  // is set.
  Result<void> register_metrics(Registry& registry);
  // Null: none. What was set before is used by nobody once this returns.
  void set(const Profiler* profiler);

 private:
  std::uint64_t read(std::uint64_t (*of)(const RecorderCounts&)) const;

  mutable std::atomic<std::uint32_t> readers_{0};
  std::atomic<const RecorderCounts*> counts_{nullptr};
};

}  // namespace kymo
