#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kymo::analysis {

// How fast something grew: half of the windows lie at or below p50, and so on. Per second.
struct RatePercentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  std::uint64_t windows = 0;
  bool exact = true;  // else each is within 1 % of the true one
};

// Where something grew fastest: as long as it grew at half its highest rate or more.
struct BusyStretch {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  double growth = 0;  // in it
};

// What a counter grew window by window, in memory that does not grow with the recording: up to
// kMostCells windows exactly; of more, neighbours are put together two by two, and percentiles come
// from a histogram of 64 steps an octave.
class RateProfile {
 public:
  static constexpr std::size_t kMostCells = 4096;

  // In the order of time. A window in which a counter fell is not given.
  void add(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t growth);

  [[nodiscard]] RatePercentiles percentiles() const;
  // No length where nothing grew.
  [[nodiscard]] BusyStretch busiest() const;

 private:
  struct Cell {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    double growth = 0;
    [[nodiscard]] double rate() const;
  };
  void count(double rate);
  void halve();

  std::vector<Cell> cells_;
  std::size_t windows_a_cell_ = 1;
  std::size_t in_last_ = 0;  // windows that the last cell holds
  std::uint64_t windows_ = 0;
  double highest_ = 0;                 // rate of a window that is counted by its step
  std::vector<std::uint64_t> counts_;  // by step of the rate; empty while the cells are exact
};

}  // namespace kymo::analysis
