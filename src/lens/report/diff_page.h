#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kymo/result.h"
#include "lens/analysis/recording_diff.h"
#include "lens/report/recording_diff.h"

namespace kymo::report {

// The data of the page of a comparison (page_data.h). To be made in a process without rights. If
// the recordings have more than `most_values` values in total, single samples are included only for
// the compared parts. `checkpoints`: the comparison of the checkpoints that have these recordings, as JSON
// (checkpoint_diff.h); null: there are none.
//
// Errors: those of report_data().
Result<std::string> diff_data(const analysis::RecordingDiff& diff,
                              std::optional<AllowedChange> allowed, std::uint64_t most_values,
                              const nlohmann::json& checkpoints);

// A comparison as one page that needs no network: the content of text_of(), that of the checkpoints, and charts that show
// all recordings over each other, aligned, the changed metrics first.
//
// Errors: those of report_page().
Result<std::string> diff_page(std::string_view data);

}  // namespace kymo::report
