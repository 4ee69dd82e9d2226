#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kymo::analysis {

// Statistics that a few outliers do not move. An empty sample has a median of 0.
double median(std::vector<double> values);
// A share `q` of the values lies at or below the result. Between two values it is interpolated.
double quantile(std::vector<double> values, double q);
// The median distance from the median, scaled to a normal distribution's standard deviation.
double scaled_mad(const std::vector<double>& values);

// Ranks from 1. Equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values);

// Theil and Sen's line. Its slope is the median of all slopes between two values.
struct Line {
  double start = 0;
  double slope = 0;  // for one step of the index
  [[nodiscard]] double at(std::size_t index) const {
    return start + slope * static_cast<double>(index);
  }
};
Line median_line(std::span<const double> values);

}  // namespace kymo::analysis
