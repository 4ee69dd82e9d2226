#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "lens/analysis/recording_diff.h"
#include "lens/report/change_check.h"

namespace kymo::report {

// Text for a person: what was compared and how, what changed, at most `rows` metrics of each kind,
// and, if `allowed` is given, whether a change is more than that. `all`: also the metrics that move
// too seldom to be tested.
std::string text_of(const analysis::RecordingDiff& diff, std::size_t rows,
                    std::optional<AllowedChange> allowed, bool all = false);
// JSON with all metrics.
nlohmann::json json_of(const analysis::RecordingDiff& diff, std::optional<AllowedChange> allowed);

}  // namespace kymo::report
