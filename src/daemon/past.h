#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "daemon/parts.h"
#include "http/server.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What was recorded earlier: the daemon-wide file with its parts, and behind it what is in memory.
//
// Threads: any; one request at a time reads the file, the others wait.

// The time of the oldest row that can be shown. Cost: a look at the file's folder.
std::uint64_t oldest_ns(const RecorderRun& run);

// `columns`; `from_ns` and `to_ns` on the recording's clock; `points`: at most so many (2000).
// What the event `samples` gives, thinned so that no spike is lost; of more than 256 MiB of rows an
// outline, which `left_out` says (docs/web.md).
// Errors: invalid_argument; not_found for a column that is not recorded; of reading.
Result<nlohmann::json> recorded_past(const Parts& parts, const http::Request& request);

}  // namespace kymo::daemon
