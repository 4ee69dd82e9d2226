#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_diff.h"

namespace kymo::report {

// Checks whether a metric changed beyond noise and by more than a share, so that a build can fail.
// If one metric changed and another one could not be tested, the outcome is `changed`.
struct ChangeCheck {
  enum class Outcome : std::uint8_t { no_change, changed, cannot_tell };

  double allowed = 0;
  std::vector<const analysis::MetricDiff*> changed;
  // Metrics that could not be tested and that differ by more than `allowed`, or by an unknown
  // amount.
  std::vector<const analysis::MetricDiff*> untold;

  [[nodiscard]] Outcome outcome() const {
    return !changed.empty()  ? Outcome::changed
           : !untold.empty() ? Outcome::cannot_tell
                             : Outcome::no_change;
  }
};

// The result refers to the metrics of `diff`.
ChangeCheck check_change(const analysis::RecordingDiff& diff, double allowed);
const char* to_string(ChangeCheck::Outcome outcome);

// Text for a person: what was compared and how, what changed, at most `rows` metrics of each kind,
// and, if `allowed` is given, whether a change is more than that.
std::string text_of(const analysis::RecordingDiff& diff, std::size_t rows,
                    std::optional<double> allowed);
// JSON with all metrics.
nlohmann::json json_of(const analysis::RecordingDiff& diff, std::optional<double> allowed);

}  // namespace kymo::report
