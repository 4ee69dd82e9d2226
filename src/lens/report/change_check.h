#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lens/analysis/recording_diff.h"

namespace kymo::report {

// The share by which a metric may change.
struct AllowedChange {
  double share = 0;
  bool only_increases = false;  // a metric may fall by any share

  // NOLINTNEXTLINE(google-explicit-constructor): a share alone is a limit in both directions.
  AllowedChange(double allowed, bool increases = false)
      : share(allowed), only_increases(increases) {}

  // Where the whole interval of a change lies. An unknown one is `across`.
  enum class Side : std::uint8_t { within, beyond, across };
  [[nodiscard]] Side side_of(const std::optional<analysis::MetricDiff::Interval>& change) const {
    if (!change) return Side::across;
    if (change->low > share || (!only_increases && change->high < -share)) return Side::beyond;
    const bool above_least = only_increases || change->low >= -share;
    return change->high <= share && above_least ? Side::within : Side::across;
  }

  // Whether a change is more than that; an unknown one is.
  [[nodiscard]] bool exceeded_by(std::optional<double> change) const {
    if (!change) return true;
    return only_increases ? *change > share : std::abs(*change) > share;
  }
};

// Checks whether a metric changed beyond noise and by more than a share, so that a build can fail. The
// whole interval of a change decides: `no_change` if there are some and all are within the share, `changed` if one
// is beyond it, even if others are across it. With a broken recording nothing is decided.
struct ChangeCheck {
  enum class Outcome : std::uint8_t { no_change, changed, cannot_tell };

  AllowedChange allowed;
  std::vector<const analysis::MetricDiff*> changed;
  // Metrics whose interval is neither within nor beyond `allowed`, or unknown.
  std::vector<const analysis::MetricDiff*> undecided;
  std::vector<const analysis::MetricDiff*> within;
  // Metrics that changed by more than `allowed`, but that other programs change, too.
  std::vector<const analysis::MetricDiff*> of_others;
  // Metrics that could not show a change by more than `allowed`, and that nobody asked for: a quantile that is
  // in one bucket in all runs, or what moves too seldom.
  std::vector<const analysis::MetricDiff*> not_judged;
  bool broken = false;  // a recording is broken

  [[nodiscard]] Outcome outcome() const {
    if (broken) return Outcome::cannot_tell;
    if (!changed.empty()) return Outcome::changed;
    return undecided.empty() && !within.empty() ? Outcome::no_change : Outcome::cannot_tell;
  }
};

// Whether the buckets of a histogram leave open on which side of a limit the change of its quantile
// is, however many runs there are.
bool is_hidden(const analysis::MetricDiff& metric, const AllowedChange& allowed);

// How many runs of each side would decide an undecided metric, if they lie as those that are there. Nothing
// if kMaxRunsToAdvise would not, or if its buckets hide it.
inline constexpr std::size_t kMaxRunsToAdvise = 100;
std::optional<std::size_t> runs_to_decide(const analysis::MetricDiff& metric,
                                          const analysis::RecordingDiff& diff,
                                          const AllowedChange& allowed);

// The result refers to the metrics of `diff`.
ChangeCheck check_change(const analysis::RecordingDiff& diff, const AllowedChange& allowed);
// `only_increases`: of AllowedChange. What fell has changed, too, but is no increase.
const char* to_string(ChangeCheck::Outcome outcome, bool only_increases = false);

}  // namespace kymo::report
