#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_diff.h"

namespace kymo::report {

// The metrics that changed beyond noise, and by more than this share: what a build may fail on.
std::vector<const analysis::MetricDiff*> beyond(const analysis::RecordingDiff& diff, double share);

// For a person: what was compared and how, what changed, at most `rows` metrics of each kind, and
// whether it is more than `allowed`, where that is asked.
std::string text_of(const analysis::RecordingDiff& diff, std::size_t rows,
                    std::optional<double> allowed);
// For a program, all of them.
nlohmann::json json_of(const analysis::RecordingDiff& diff, std::optional<double> allowed);

}  // namespace kymo::report
