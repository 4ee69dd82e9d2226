#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/recording_diff.h"
#include "kymo/result.h"

namespace kymo::report {

// A comparison as one page that needs no network: the content of text_of(), and charts that show
// all recordings over each other, aligned, the changed metrics first. If the recordings have more
// than `most_values` values in total, single samples are included only for the compared parts.
//
// Errors: those of html_report().
Result<std::string> diff_page(const analysis::RecordingDiff& diff, std::optional<double> allowed,
                              std::uint64_t most_values);

}  // namespace kymo::report
