#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kymo::analysis {

// Statistical tests of whether one sample lies higher than another. They use ranks only, so neither
// outliers nor the distribution of the values matter.

// The p of H. B. Mann and D. R. Whitney's two-sided test: the probability that two samples of one
// process lie at least as far apart as these. `margin` is a share of the values of `before`: only
// the distance beyond it counts. p is exact for up to 40 values in total, also with equal values.
// For more, it comes from the normal distribution with corrections for ties and continuity, which
// makes p rather too large. The values must be independent and not negative.
double mann_whitney_p(std::span<const double> before, std::span<const double> after, double margin);

// The lowest p that samples of these sizes can have.
double lowest_p(std::size_t before, std::size_t after);

// How far `after` lies above `before`: the median of all differences (Hodges and Lehmann), and the
// interval of shifts that the test above does not reject.
struct Shift {
  double median = 0;
  double low = 0;
  double high = 0;
  double level = 0;  // the confidence level of the interval: 0.95, or less with few values
};
Shift shift_between(std::span<const double> before, std::span<const double> after);

// The same if each sample had `size` values that lie as these do: how narrow the interval would be.
Shift shift_at_size(std::span<const double> before, std::span<const double> after,
                    std::size_t size);

// How many consecutive values are worth one independent value (at least 1). This is the integrated
// autocorrelation time of the ranks, summed over A. Sokal's window. Returns nothing if all values
// are equal, because they do not show whether they depend on each other.
std::optional<double> correlation_length(std::span<const double> series);

}  // namespace kymo::analysis
