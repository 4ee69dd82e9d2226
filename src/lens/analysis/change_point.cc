#include "lens/analysis/change_point.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lens/analysis/robust.h"

namespace kymo::analysis {
namespace {

constexpr std::size_t kMaxForExact = 8;  // 40,320 orders
constexpr int kShuffles = 9'999;
// A level needs at least this many values: one or two may be outliers.
constexpr std::size_t kMinPerSide = 3;

// The U of the first t values against the others is 2 (r1 + ... + rt) - t (n + 1), with ranks r. Its variance is
// t (n - t) (n + 1) / 3. Equal ranks divide it by the same factor for all cuts, which is left out.
CutTest strongest_cut(const std::vector<double>& ranks) {
  CutTest best;
  const std::size_t count = ranks.size();
  const auto n = static_cast<double>(count);
  double u = 0;
  for (std::size_t t = 1; t + kMinPerSide <= count; ++t) {
    u += 2 * ranks[t - 1] - (n + 1);
    if (t < kMinPerSide) continue;
    const auto before = static_cast<double>(t);
    const double z = std::abs(u) / std::sqrt(before * (n - before) * (n + 1) / 3);
    if (z > best.statistic) {
      best.statistic = z;
      best.at = t;
    }
  }
  return best;
}

double exact_p(std::vector<double> ranks, double statistic) {
  std::sort(ranks.begin(), ranks.end());
  std::size_t orders = 0;
  std::size_t as_large = 0;
  do {  // with equal ranks, each distinct order comes once, and all are equally likely
    ++orders;
    as_large += strongest_cut(ranks).statistic >= statistic ? 1U : 0U;
  } while (std::next_permutation(ranks.begin(), ranks.end()));
  return static_cast<double>(as_large) / static_cast<double>(orders);
}

double shuffled_p(std::vector<double> ranks, double statistic) {
  std::mt19937_64 random(1979);  // a fixed seed, so that the same values give the same verdict
  int as_large = 1;              // the series itself
  for (int i = 0; i < kShuffles; ++i) {
    for (std::size_t left = ranks.size(); left > 1; --left) {
      std::swap(ranks[left - 1], ranks[random() % left]);
    }
    as_large += strongest_cut(ranks).statistic >= statistic ? 1 : 0;
  }
  return static_cast<double>(as_large) / (kShuffles + 1);
}

double distance_from_level(std::span<const double> part) {
  const double level = median({part.begin(), part.end()});
  return std::accumulate(part.begin(), part.end(), 0.0,
                         [&](double sum, double value) { return sum + std::abs(value - level); });
}

double distance_from_levels(std::span<const double> series, std::size_t cut) {
  return distance_from_level(series.first(cut)) + distance_from_level(series.subspan(cut));
}

bool is_drift(std::span<const double> series, std::size_t cut) {
  const Line line = median_line(series);
  double from_line = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    from_line += std::abs(series[i] - line.at(i));
  }
  return from_line < distance_from_levels(series, cut);
}

void cut(std::span<const double> series, std::size_t begin, std::size_t end, double allowed_p,
         std::vector<Change>& changes) {
  if (end - begin < kMinForChange) {
    return;
  }
  const std::span<const double> part = series.subspan(begin, end - begin);
  Change change;
  change.begin = begin;
  change.end = end;
  change.test = cut_test(part);
  if (change.test.p >= allowed_p) {
    return;
  }
  const std::size_t cut_at = closest_cut(part);
  change.drift = is_drift(part, cut_at);
  const std::size_t at = change.at = begin + cut_at;
  if (change.drift) {
    changes.push_back(change);
    return;
  }
  cut(series, begin, at, allowed_p / 2, changes);
  changes.push_back(change);
  cut(series, at, end, allowed_p / 2, changes);
}

}  // namespace

CutTest cut_test(std::span<const double> series) {
  const std::vector<double> ranks = ranks_of(series);
  CutTest found = strongest_cut(ranks);
  if (found.statistic > 0) {
    found.p = series.size() <= kMaxForExact ? exact_p(ranks, found.statistic)
                                            : shuffled_p(ranks, found.statistic);
  }
  return found;
}

std::size_t closest_cut(std::span<const double> series) {
  std::size_t best = kMinPerSide;
  double least = distance_from_levels(series, best);
  for (std::size_t cut = best + 1; cut + kMinPerSide <= series.size(); ++cut) {
    if (const double distance = distance_from_levels(series, cut); distance < least) {
      least = distance;
      best = cut;
    }
  }
  return best;
}

std::vector<Change> find_changes(std::span<const double> series, double allowed_p) {
  std::vector<Change> changes;
  cut(series, 0, series.size(), allowed_p, changes);
  return changes;
}

}  // namespace kymo::analysis
