#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

// The metadata of the recording; null if there are none.
nlohmann::json metadata_of(const std::string& tsv);

// Marks the recording as recovered, with counts taken from the files. Ticks between the first row
// or gap and the last row that are neither a row nor in a gap become gaps of the cause `unlisted`: the
// recorder was killed before it could list them. `recording`: how the ring describes it, for a recording
// without metadata. The gaps and the metadata are on the disk afterwards.
Result<void> mark_recovered(const std::string& tsv, const nlohmann::json& recording,
                            MissCause unlisted);

}  // namespace kymo
