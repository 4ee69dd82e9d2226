#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kymo::analysis {

// The result of a test whether and where the level of a series changed once.
struct CutTest {
  std::size_t at = 0;  // the first value after the change
  // The maximum of Mann and Whitney's |U|, divided by its standard deviation, over all ways to cut in two.
  double statistic = 0;
  double p = 1;  // the probability of so large a one if the same values are in random order
};

// The maximally selected rank statistic (B. Lausen and M. Schumacher, "Maximally selected rank statistics", 1992). By its
// standard deviation, a few values at an end count as much as half of the series. The test uses
// ranks only, so neither outliers nor the distribution of the values matter. p is exact for up to 8
// values. For more, it comes from 9,999 shuffles, which are the same each time.
//
// Cost: up to 9,999 passes over the series.
CutTest cut_test(std::span<const double> series);

// A lasting change of a series.
struct Change {
  std::size_t begin = 0;  // the change was found in the values [begin, end)
  std::size_t end = 0;
  // The first value after the change. It is chosen so that the medians of the two sides lie closest
  // to the values.
  std::size_t at = 0;
  CutTest test;        // its `at` counts from `begin`
  bool drift = false;  // a slow change: a line lies closer to the values than two levels do
};

// With fewer values, p cannot be below 0.05.
inline constexpr std::size_t kMinForChange = 8;

// The most likely place of a change: the cut whose two medians lie closest to the values on its sides. Precondition:
// at least kMinForChange values.
std::size_t closest_cut(std::span<const double> series);

// Finds all changes, oldest first. If the test finds a change, the series is cut there and both
// parts are tested again, with half of `allowed_p`. A drift is not cut further.
std::vector<Change> find_changes(std::span<const double> series, double allowed_p = 0.05);

}  // namespace kymo::analysis
