#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/inside/sampler.h"
#include "kymo/registry.h"

namespace kymo::inside {

// The newest values of sources, which a thread of its own reads.
//
// Threads: any.
class Latest {
 public:
  // Reads every `interval`, which is at least a millisecond.
  Latest(std::vector<std::unique_ptr<Source>> sources, std::chrono::nanoseconds interval);
  ~Latest() { sampler_.stop(); }
  Latest(const Latest&) = delete;
  Latest& operator=(const Latest&) = delete;

  [[nodiscard]] const std::vector<Metric>& columns() const { return sampler_.columns(); }
  [[nodiscard]] std::vector<std::uint64_t> values() const;
  // Registers all columns. Those of a row come from one reading. This object must outlive what
  // samples the registry.
  // Errors: those of Registry::callback().
  Result<void> add_to(Registry& registry);

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> values_;  // guarded by mutex_
  std::vector<std::uint64_t> row_;     // of the row that is being sampled
  Sampler sampler_;                    // destroyed first
};

// What can be seen of a process and its descendants, and of the machine, by files of the kernel.
std::vector<std::unique_ptr<Source>> sources_of_process(pid_t pid);

}  // namespace kymo::inside
