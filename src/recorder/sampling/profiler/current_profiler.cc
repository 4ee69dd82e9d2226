#include "recorder/sampling/profiler/current_profiler.h"

#include <thread>

#include "recorder/sampling/collect/recorder_metrics.h"

namespace kymo {

Result<void> CurrentProfiler::register_metrics(Registry& registry) {
  for (RecorderMetric& own : recorder_metrics()) {
    Result<void> registered =
        registry.callback(std::move(own.metric), [this, of = own.read] { return read(of); });
    if (!registered) return registered;
  }
  return {};
}

void CurrentProfiler::set(const Profiler* profiler) {
  counts_.store(profiler == nullptr ? nullptr : &profiler->counts(), std::memory_order_seq_cst);
  while (readers_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

std::uint64_t CurrentProfiler::read(std::uint64_t (*of)(const RecorderCounts&)) const {
  readers_.fetch_add(1, std::memory_order_seq_cst);
  const RecorderCounts* const counts = counts_.load(std::memory_order_seq_cst);
  const std::uint64_t value = counts == nullptr ? 0 : of(*counts);
  readers_.fetch_sub(1, std::memory_order_seq_cst);  // pairs with the load in set()
  return value;
}

}  // namespace kymo
