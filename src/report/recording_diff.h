#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_diff.h"

namespace kymo::report {

// The share by which a metric may change.
struct AllowedChange {
  double share = 0;
  bool only_increases = false;  // a metric may fall by any share

  // NOLINTNEXTLINE(google-explicit-constructor): a share alone is a limit in both directions.
  AllowedChange(double allowed, bool increases = false)
      : share(allowed), only_increases(increases) {}

  // Whether a change is more than that; an unknown one is.
  [[nodiscard]] bool exceeded_by(std::optional<double> change) const {
    if (!change) return true;
    return only_increases ? *change > share : std::abs(*change) > share;
  }
};

// Checks whether a metric changed beyond noise and by more than a share, so that a build can fail.
// If one metric changed and another one could not be tested, the outcome is `changed`. A metric that
// other programs change, too (MetricDiff::others), counts for neither.
struct ChangeCheck {
  enum class Outcome : std::uint8_t { no_change, changed, cannot_tell };

  AllowedChange allowed;
  std::vector<const analysis::MetricDiff*> changed;
  // Metrics that could not be tested and that differ by more than `allowed`, or by an unknown
  // amount.
  std::vector<const analysis::MetricDiff*> undecided;
  // Metrics that changed by more than `allowed`, but that other programs change, too.
  std::vector<const analysis::MetricDiff*> of_others;

  [[nodiscard]] Outcome outcome() const {
    return !changed.empty()     ? Outcome::changed
           : !undecided.empty() ? Outcome::cannot_tell
                                : Outcome::no_change;
  }
};

// The result refers to the metrics of `diff`.
ChangeCheck check_change(const analysis::RecordingDiff& diff, const AllowedChange& allowed);
const char* to_string(ChangeCheck::Outcome outcome);

// Text for a person: what was compared and how, what changed, at most `rows` metrics of each kind,
// and, if `allowed` is given, whether a change is more than that. `all`: also the metrics that move
// too seldom to be tested.
std::string text_of(const analysis::RecordingDiff& diff, std::size_t rows,
                    std::optional<AllowedChange> allowed, bool all = false);
// JSON with all metrics.
nlohmann::json json_of(const analysis::RecordingDiff& diff, std::optional<AllowedChange> allowed);

}  // namespace kymo::report
