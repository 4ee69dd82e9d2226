#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kymo::analysis {

// What Pettitt's test says of a series: where, if anywhere, its level changed once.
struct Pettitt {
  std::size_t at = 0;    // the first value after the change
  double statistic = 0;  // K, the maximal |U| of Mann and Whitney over all ways to cut in two
  double p = 1;  // how often a series without a change, of the same values, has as large a K
};

// A. N. Pettitt, "A non-parametric approach to the change-point problem" (1979): by ranks alone, so
// that neither outliers nor the values' distribution matter. p is exact up to 8 values and by 9,999
// shuffles beyond, the same ones each time. Cost: 9,999 passes over the series.
Pettitt pettitt_test(std::span<const double> series);

// Where a series changed for good.
struct Change {
  std::size_t begin = 0;  // the values that it was found in: [begin, end)
  std::size_t end = 0;
  // The first value after it: where two levels, the medians of either side, lie closest to the
  // values. The test's own cut leans towards the middle.
  std::size_t at = 0;
  Pettitt test;        // its `at` counts from `begin`
  bool drift = false;  // a slow one: a line lies closer to the values than two levels do
};

// Fewer values than this can show no change below a p of 0.05.
inline constexpr std::size_t kFewestForChange = 8;

// All changes, oldest first: the series is cut where the test says so, and each part looked at
// again, with half the p allowed each time. A drift is not cut further.
std::vector<Change> find_changes(std::span<const double> series, double allowed_p = 0.05);

}  // namespace kymo::analysis
