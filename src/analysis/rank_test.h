#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kymo::analysis {

// Whether one sample lies higher than another, by ranks alone, so that neither outliers nor the
// values' distribution matter.

// H. B. Mann and D. R. Whitney's test, two-sided: how often two samples of one process lie as far
// apart as these do beyond `margin`, a share of `before`'s values (0: at all). Exact up to 40
// values together, also with equal ones; beyond, by the normal distribution with the corrections
// for ties and for continuity, which errs towards 1. The values must not be negative and be
// independent.
double mann_whitney_p(std::span<const double> before, std::span<const double> after, double margin);

// The lowest p that samples of these sizes can have.
double lowest_p(std::size_t before, std::size_t after);

// S. Holm's correction for so many tests at once: below 0.05 one of them is wrong in at most one of
// 20 families that hold no difference at all. In the order of `p`.
std::vector<double> holm_adjusted(std::span<const double> p);

// How far `after` lies above `before`: the median of all differences (Hodges and Lehmann), and the
// interval that the test above does not reject.
struct Shift {
  double median = 0;
  double low = 0;
  double high = 0;
  double level = 0;  // how often such an interval holds the true shift: 0.95, less of a few values
};
Shift shift_between(std::span<const double> before, std::span<const double> after);

// How many neighbours in a row are worth one independent value, at least 1: the integrated
// autocorrelation time of the ranks, summed as far as A. Sokal's window goes. None where all values
// are equal: nothing tells whether they depend on each other.
std::optional<double> correlation_length(std::span<const double> series);

}  // namespace kymo::analysis
