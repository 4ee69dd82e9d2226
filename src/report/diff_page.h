#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/recording_diff.h"
#include "kymo/result.h"

namespace kymo::report {

// A comparison as one page that needs no network: what text_of() says, and charts with all
// recordings laid over each other where they are aligned, what changed first. Together more than
// `most_values` values: single samples only of what was compared. Errors: those of html_report().
Result<std::string> diff_page(const analysis::RecordingDiff& diff, std::optional<double> allowed,
                              std::uint64_t most_values);

}  // namespace kymo::report
