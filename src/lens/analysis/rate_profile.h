#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kymo::analysis {

// Percentiles of the rates of all windows, per second.
struct RatePercentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  std::uint64_t windows = 0;
  bool exact = true;  // if false, each percentile is within 1 % of the true one
};

// The time around the highest rate in which the rate was at least half of it.
struct BusyStretch {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  double growth = 0;  // in this time
};

// The growth of a counter, window by window, in memory that does not grow with the recording. Up to
// kMaxProfileCells windows are kept as they are. If there are more, neighbours are merged in pairs,
// and the percentiles come from a histogram with 64 steps for each power of two.
class RateProfile {
 public:
  static constexpr std::size_t kMaxProfileCells = 4096;

  // Call it in the order of time. The caller leaves out windows in which the counter fell.
  void add(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t growth);

  [[nodiscard]] RatePercentiles percentiles() const;
  // The stretch has no length if the counter did not grow.
  [[nodiscard]] BusyStretch busiest() const;

 private:
  struct Cell {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    double growth = 0;
    [[nodiscard]] double rate() const;
  };
  void count(double rate);
  void merge_pairs_of_cells();

  std::vector<Cell> cells_;
  std::size_t windows_a_cell_ = 1;
  std::size_t in_last_ = 0;  // windows that the last cell holds
  std::uint64_t windows_ = 0;
  double highest_ = 0;                 // the highest rate in `counts_`
  std::vector<std::uint64_t> counts_;  // by step of the rate; empty while the cells are exact
};

}  // namespace kymo::analysis
