#include "lens/analysis/robust.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kymo::analysis {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double scaled_mad(const std::vector<double>& values) {
  constexpr double kToStandardDeviation = 1.4826;
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - middle));
  }
  return kToStandardDeviation * median(std::move(distances));
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    }
    begin = end;
  }
  return ranks;
}

Line median_line(std::span<const double> values) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
    }
  }
  Line line;
  line.slope = median(std::move(slopes));
  std::vector<double> starts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    starts.push_back(values[i] - line.slope * static_cast<double>(i));
  }
  line.start = median(std::move(starts));
  return line;
}

}  // namespace kymo::analysis
