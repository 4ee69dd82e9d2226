#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_diff.h"

namespace kymo::report {

// Whether something changed beyond noise and by more than a share: what a build may fail on. A
// change outweighs what cannot be told.
struct ChangeCheck {
  enum class Outcome : std::uint8_t { no_change, changed, cannot_tell };

  double allowed = 0;
  std::vector<const analysis::MetricDiff*> changed;
  // They differ by more than that, or nobody knows by how much, and no test can tell whether it is
  // noise.
  std::vector<const analysis::MetricDiff*> untold;

  [[nodiscard]] Outcome outcome() const {
    return !changed.empty()  ? Outcome::changed
           : !untold.empty() ? Outcome::cannot_tell
                             : Outcome::no_change;
  }
};

// Borrows the metrics of `diff`.
ChangeCheck check_change(const analysis::RecordingDiff& diff, double allowed);
const char* to_string(ChangeCheck::Outcome outcome);

// For a person: what was compared and how, what changed, at most `rows` metrics of each kind, and
// whether it is more than `allowed`, where that is asked.
std::string text_of(const analysis::RecordingDiff& diff, std::size_t rows,
                    std::optional<double> allowed);
// For a program, all of them.
nlohmann::json json_of(const analysis::RecordingDiff& diff, std::optional<double> allowed);

}  // namespace kymo::report
