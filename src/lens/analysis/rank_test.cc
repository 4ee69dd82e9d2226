#include "lens/analysis/rank_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lens/analysis/robust.h"

namespace kymo::analysis {
namespace {

constexpr std::size_t kMaxForExactSums = 40;
constexpr double kLevel = 0.95;
constexpr double kNormalAtLevel = 1.959963984540054;
constexpr double kSokalWindow = 5;

// Counts, for each sum, how many choices of `chosen` ranks have it. If values can be equal, the
// caller doubles the ranks: equal values share the mean of their ranks, which may end in .5.
std::vector<double> count_sums(const std::vector<std::size_t>& ranks, std::size_t chosen) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<std::vector<double>> counts(chosen + 1, std::vector<double>(most + 1));
  counts[0][0] = 1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t k = std::min(i + 1, chosen); k > 0; --k) {
      for (std::size_t sum = ranks[i]; sum <= most; ++sum) {
        counts[k][sum] += counts[k - 1][sum - ranks[i]];
      }
    }
  }
  return counts[chosen];
}

// The share of sums that are at least `sum`.
double share_from(const std::vector<double>& counts, std::size_t sum) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(sum);
  return std::accumulate(begin, counts.end(), 0.0) / all;
}

double normal_tail(double ranks_sum, const std::vector<double>& ranks, std::size_t chosen) {
  const auto all = static_cast<double>(ranks.size());
  const auto n = static_cast<double>(chosen);
  const double mean = n * (all + 1) / 2;
  double spread = 0;  // of the ranks; ties make it smaller
  for (const double rank : ranks) spread += (rank - (all + 1) / 2) * (rank - (all + 1) / 2);
  const double variance = n * (all - n) / (all * (all - 1)) * spread;
  if (variance <= 0) return 1;
  constexpr double kContinuity = 0.5;
  return std::erfc((ranks_sum - mean - kContinuity) / std::sqrt(2 * variance)) / 2;
}

// The one-sided p: the probability that `after` lies at least this high above `before`.
double higher_p(std::span<const double> before, std::span<const double> after) {
  std::vector<double> values(before.begin(), before.end());
  values.insert(values.end(), after.begin(), after.end());
  const std::vector<double> ranks = ranks_of(values);
  const auto behind = static_cast<std::ptrdiff_t>(before.size());
  if (values.size() > kMaxForExactSums) {
    return normal_tail(std::accumulate(ranks.begin() + behind, ranks.end(), 0.0), ranks,
                       after.size());
  }
  std::vector<std::size_t> doubled;
  for (const double rank : ranks)
    doubled.push_back(static_cast<std::size_t>(std::lround(2 * rank)));
  const std::size_t sum = std::accumulate(doubled.begin() + behind, doubled.end(), std::size_t{0});
  return share_from(count_sums(doubled, after.size()), sum);
}

std::vector<double> scaled(std::span<const double> values, double factor) {
  std::vector<double> out;
  for (const double value : values) out.push_back(value * factor);
  return out;
}

// How many differences the confidence interval leaves out at each end, and its level.
std::pair<std::size_t, double> left_out(std::size_t before, std::size_t after) {
  const auto pairs = static_cast<double>(before * after);
  const std::size_t all = before + after;
  if (all > kMaxForExactSums) {
    const double reach = kNormalAtLevel * std::sqrt(pairs * static_cast<double>(all + 1) / 12);
    return {static_cast<std::size_t>(std::max(0.0, std::floor(pairs / 2 - reach))), kLevel};
  }
  std::vector<std::size_t> ranks(all);
  for (std::size_t i = 0; i < all; ++i) ranks[i] = i + 1;
  const std::vector<double> counts = count_sums(ranks, after);
  const double choices = std::accumulate(counts.begin(), counts.end(), 0.0);
  const std::size_t least = after * (after + 1) / 2;
  std::size_t cut = 0;
  double share = counts[least] / choices;  // of the choices that lie below the interval
  while (share + counts[least + cut + 1] / choices <= (1 - kLevel) / 2) {
    ++cut;
    share += counts[least + cut] / choices;
  }
  return {cut, std::min(kLevel, 1 - 2 * share)};
}

}  // namespace

double mann_whitney_p(std::span<const double> before, std::span<const double> after,
                      double margin) {
  if (before.empty() || after.empty()) return 1;
  const double higher = higher_p(scaled(before, 1 + margin), after);
  const double lower = higher_p(after, scaled(before, 1 - margin));
  return std::min(1.0, 2 * std::min(higher, lower));
}

double lowest_p(std::size_t before, std::size_t after) {
  double choices = 1;
  for (std::size_t i = 1; i <= after; ++i) {
    choices *= static_cast<double>(before + i) / static_cast<double>(i);
  }
  return std::min(1.0, 2 / choices);
}

namespace {

Shift shift_of(std::span<const double> before, std::span<const double> after,
               std::size_t size_before, std::size_t size_after) {
  if (before.empty() || after.empty()) return {};
  std::vector<double> differences;
  differences.reserve(before.size() * after.size());
  for (const double from : before) {
    for (const double to : after) differences.push_back(to - from);
  }
  std::sort(differences.begin(), differences.end());
  const auto [cut_there, level] = left_out(size_before, size_after);
  const std::size_t cut = cut_there * differences.size() / (size_before * size_after);
  const std::size_t half = differences.size() / 2;
  Shift shift;
  shift.median = differences.size() % 2 == 1 ? differences[half]
                                             : (differences[half - 1] + differences[half]) / 2;
  shift.low = differences[cut];
  shift.high = differences[differences.size() - 1 - cut];
  shift.level = std::max(0.0, level);
  return shift;
}

}  // namespace

Shift shift_between(std::span<const double> before, std::span<const double> after) {
  return shift_of(before, after, before.size(), after.size());
}

Shift shift_at_size(std::span<const double> before, std::span<const double> after,
                    std::size_t size) {
  return shift_of(before, after, size, size);
}

std::optional<double> correlation_length(std::span<const double> series) {
  std::vector<double> ranks = ranks_of(series);
  const double mean = (static_cast<double>(series.size()) + 1) / 2;
  double variance = 0;
  for (double& rank : ranks) {
    rank -= mean;
    variance += rank * rank;
  }
  if (variance == 0) return {};
  double length = 1;
  for (std::size_t lag = 1; lag < ranks.size(); ++lag) {
    double product = 0;
    for (std::size_t i = lag; i < ranks.size(); ++i) product += ranks[i] * ranks[i - lag];
    length += 2 * product / variance;
    if (static_cast<double>(lag) >= kSokalWindow * length) break;
  }
  return std::max(1.0, length);
}

}  // namespace kymo::analysis
