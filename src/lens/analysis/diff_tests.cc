#include "lens/analysis/diff_tests.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/holm.h"
#include "lens/analysis/rank_test.h"
#include "lens/analysis/robust.h"

namespace kymo::analysis {
namespace {

using DiffVerdict = MetricDiff::Verdict;

// With fewer blocks, a test has almost no power. With Holm's correction, it needs even more.
constexpr std::size_t kMinBlocks = 10;
// A difference of this share is shown even if it cannot be tested, unless the metric hardly moves.
constexpr double kLargeDifference = 0.1;
// 1 + kLengthsABlock * (L - 1) neighbouring blocks become one, where L is their correlation length.
// This leaves a correlation of 0.05 between the new neighbours.
constexpr double kLengthsABlock = 4;

bool all_equal(const std::vector<double>& a, const std::vector<double>& b) {
  const auto equal = [&](double value) { return value == a.front(); };
  return std::all_of(a.begin(), a.end(), equal) && std::all_of(b.begin(), b.end(), equal);
}

std::vector<double> merged(const std::vector<double>& values, std::size_t neighbours) {
  std::vector<double> out;
  for (std::size_t i = 0; i + neighbours <= values.size(); i += neighbours) {
    double sum = 0;
    for (std::size_t k = i; k < i + neighbours; ++k) sum += values[k];
    out.push_back(sum / static_cast<double>(neighbours));
  }
  return out;
}

// How many values differ from the median.
std::size_t moved(const std::vector<double>& values) {
  const double still = median(values);
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value != still; }));
}

// Whether more than a quarter of the values equal the median. False if all do, because then the
// metric is idle on that side.
bool seldom_moves(const std::vector<double>& values) {
  const std::size_t moves = moved(values);
  return moves != 0 && 4 * moves < 3 * values.size();
}

void test(const std::vector<double>& before, const std::vector<double>& after, double margin,
          MetricDiff& diff) {
  diff.samples_before = before.size();
  diff.samples_after = after.size();
  diff.shift = shift_between(before, after);
  diff.p = mann_whitney_p(before, after, margin);
  diff.verdict = DiffVerdict::none;
}

}  // namespace

void test_blocks(const DiffValues& values, std::uint64_t block_ns, double margin,
                 MetricDiff& diff) {
  const auto& [before, after] = values.blocks;
  if (values.phase) {
    diff.reason = kOneRunEach;
    return;
  }
  if (values.values_a_block != 0 && std::min(before.size(), after.size()) < kMinBlocks) {
    diff.verdict = diff.before == diff.after ? DiffVerdict::the_same : DiffVerdict::not_told;
    diff.tells_nothing = diff.verdict == DiffVerdict::the_same;
    diff.reason = "too few values: " + std::to_string(before.size()) + " and " +
                  std::to_string(after.size()) + " of " + std::to_string(kMinBlocks) +
                  " blocks of " + std::to_string(values.values_a_block) + " values";
    return;
  }
  const std::optional<double> length_before = correlation_length(before);
  const std::optional<double> length_after = correlation_length(after);
  if (!length_before && !length_after) {
    const bool same =
        !before.empty() && !after.empty() ? all_equal(before, after) : diff.before == diff.after;
    diff.verdict = same ? DiffVerdict::the_same : DiffVerdict::not_told;
    diff.reason = same ? "" : "it never moves within a recording: one value on each side";
    return;
  }
  const std::size_t moved_before = moved(before);
  const std::size_t moved_after = moved(after);
  if (std::max(moved_before, moved_after) < kMinMoves) {
    diff.reason = "too few events: it moves in " + std::to_string(moved_before) + " of " +
                  std::to_string(before.size()) + " and " + std::to_string(moved_after) + " of " +
                  std::to_string(after.size()) + " blocks";
    diff.tells_nothing =
        !diff.events || diff.before == diff.after;  // else its growth tells something
    return;
  }
  const double length = std::max(length_before.value_or(1), length_after.value_or(1));
  auto neighbours = static_cast<std::size_t>(std::ceil(1 + kLengthsABlock * (length - 1)));
  std::vector<double> a = merged(before, neighbours);
  std::vector<double> b = merged(after, neighbours);
  // A metric that seldom moves gets longer blocks, so that it moves in most of them. Otherwise the
  // median of the blocks would not show a change.
  while (std::min(a.size(), b.size()) >= kMinBlocks && (seldom_moves(a) || seldom_moves(b))) {
    neighbours *= 2;
    a = merged(before, neighbours);
    b = merged(after, neighbours);
  }
  if (std::min(a.size(), b.size()) < kMinBlocks) {
    diff.reason = "too few independent values: " + std::to_string(a.size()) + " and " +
                  std::to_string(b.size()) + " of " + std::to_string(kMinBlocks);
    diff.dependent = true;
    diff.tells_nothing = diff.share() && std::abs(*diff.share()) < kLargeDifference;
    return;
  }
  if (values.values_a_block == 0) diff.block_ns = neighbours * block_ns;
  test(a, b, margin, diff);
}

void test_runs(const std::vector<double>& before, const std::vector<double>& after, double margin,
               MetricDiff& diff) {
  const bool same = all_equal(before, after);
  if (same) diff.verdict = DiffVerdict::the_same;
  if (std::min(before.size(), after.size()) < kMinRuns) {
    diff.tells_nothing = same;
    diff.reason = "too few runs: " + std::to_string(before.size()) + " and " +
                  std::to_string(after.size()) + " of " + std::to_string(kMinRuns);
  } else if (!same) {
    test(before, after, margin, diff);
    diff.runs = {before, after};
  }
}

// With fewer runs, no p can be low enough for this number of tests.
std::size_t runs_needed(std::size_t tests) {
  std::size_t needed = kMinRuns;
  while (lowest_p(needed, needed) * static_cast<double>(tests) >= kDiffAllowedP) ++needed;
  return needed;
}

namespace {

void mark_untestable(std::size_t tested, std::vector<MetricDiff>& metrics) {
  const std::size_t needed = runs_needed(tested);
  for (MetricDiff& metric : metrics) {
    if (metric.verdict == DiffVerdict::none &&
        lowest_p(metric.samples_before, metric.samples_after) * static_cast<double>(tested) >=
            kDiffAllowedP) {
      metric.verdict = DiffVerdict::not_told;
      metric.reason = "too few runs for " + std::to_string(tested) + " metrics at once: give " +
                      std::to_string(needed) + " of each side, or ask for fewer metrics";
    }
  }
}

}  // namespace

std::size_t correct(std::vector<MetricDiff>& metrics, bool by_runs) {
  std::vector<double> p;
  for (const MetricDiff& metric : metrics) {
    if (metric.verdict == DiffVerdict::none) p.push_back(metric.p);
  }
  const std::vector<double> adjusted = holm_adjusted(p);
  std::size_t at = 0;
  for (MetricDiff& metric : metrics) {
    if (metric.verdict != DiffVerdict::none) continue;
    metric.adjusted_p = adjusted[at++];
    // Ranks can differ even if the median shift is 0: then there is no size to report.
    if (metric.adjusted_p < kDiffAllowedP && metric.shift.median != 0) {
      metric.verdict = DiffVerdict::changed;
    }
  }
  if (by_runs) mark_untestable(p.size(), metrics);
  return p.size();
}

}  // namespace kymo::analysis
