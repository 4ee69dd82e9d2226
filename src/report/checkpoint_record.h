#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kymo/result.h"

namespace kymo::report {

// The version of the format of checkpoint.json, kymod's record of a checkpoint.
inline constexpr std::int64_t kRecordVersion = 1;

// Reads a checkpoint.json.
//
// Errors: not_found if there is none.
//         data_loss if it is damaged.
//         unimplemented if its format is newer than kRecordVersion.
Result<nlohmann::json> read_checkpoint_record(const std::string& path);

}  // namespace kymo::report
