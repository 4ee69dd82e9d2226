#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/recording.h"

namespace kymo::analysis {

// Finds the parts of recordings that were rotated (docs/formats.md) among `paths`. Parts that
// follow each other without a hole are one group, in the order of their rows. Any other recording is
// a group of its own. The groups are in the order in which their first member is named.
// Cost: reads the metadata of each recording, if there are several.
std::vector<std::vector<std::string>> join_parts(const std::vector<std::string>& paths);

// Opens the parts of such a group as one recording: counts and gaps are those of all parts.
//
// Errors: those of open_recording(). invalid_argument if a part has other columns than the first.
Result<Recording> open_parts(const std::vector<std::string>& parts);

}  // namespace kymo::analysis
