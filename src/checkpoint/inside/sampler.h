#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/event.h"
#include "checkpoint/inside/source.h"

namespace kymo::inside {

// Reads sources again and again on a thread of its own, so that no other thread waits for a file.
//
// Cost:      at most 2.5 % of a CPU (LookPace), as long as no reading of a source is long.
// Threads:   the members on the owner's thread. `put` is called on the sampler's thread, and on the
//            owner's in stop(), never on both at once.
// Ownership: owns the sources.
// Errors:    if no thread can be started, nothing is read.
class Sampler {
 public:
  // Gets the values of all columns, in their order. Those from ages() on are times (CLOCK_MONOTONIC) instead of ages.
  using Put = std::function<void(std::span<const std::uint64_t> values)>;

  // Reads once. Counters count from this reading on.
  explicit Sampler(std::vector<std::unique_ptr<Source>> sources);
  ~Sampler() { stop(); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // The columns of all sources, then those that say how old their values are (base/reading_age.h).
  [[nodiscard]] const std::vector<Metric>& columns() const { return columns_; }
  // The first of the latter.
  [[nodiscard]] std::size_t ages() const { return columns_.size() - ages_.size(); }
  // The newest values. To be called before start() or after stop().
  [[nodiscard]] const std::vector<std::uint64_t>& values() const { return shown_; }
  // What is missing, one line each. To be called before start() or after stop().
  [[nodiscard]] std::vector<std::string> missing() const;
  // The sleeper of the source that has one (Source::sleeper()). To be called before start() or after stop().
  [[nodiscard]] Sleeper sleeper() const;
  // The longest of the sources (Source::longest_disk_wait_ns()). The same.
  [[nodiscard]] std::uint64_t longest_disk_wait_ns() const;

  // Reads every `interval`, which is at least a millisecond, or less often: missing() says so then.
  void start(std::chrono::nanoseconds interval, Put put);
  // Reads a last time. Does nothing if nothing is being read.
  void stop();
  // CPU time of the thread, and how often it has read. To be called after stop().
  [[nodiscard]] std::uint64_t cpu_ns() const { return cpu_ns_; }
  [[nodiscard]] std::uint64_t readings() const { return readings_; }

 private:
  void add_ages();
  void run();
  void read_all();
  void put_all();

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::size_t> ages_;  // of each column of an age: its source
  std::vector<Metric> columns_;
  std::vector<std::uint64_t> read_;     // as the sources gave them
  std::vector<std::uint64_t> read_at_;  // each source
  std::vector<std::uint64_t> values_;   // the same, but a counter never goes back
  std::vector<std::uint64_t> begun_;    // the first values of counters; 0 for gauges
  std::vector<std::uint64_t> shown_;    // values_ - begun_
  std::uint64_t interval_ns_ = 0;
  Put put_;
  Event stop_;
  std::uint64_t cpu_ns_ = 0;
  std::uint64_t ran_ns_ = 0;
  std::uint64_t readings_ = 0;
  std::thread thread_;
};

}  // namespace kymo::inside
