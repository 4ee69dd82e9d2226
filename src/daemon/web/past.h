#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/http/server.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Reads earlier rows for the page: from the daemon-wide recording with its parts, and the newest
// ones from memory.
//
// Threads: any. One request at a time reads the files, the others wait.

// The time of the oldest row that can be shown.
// Cost: lists the folder of the daemon-wide recording, and reads the first row of one part.
std::uint64_t oldest_ns(const RecorderRun& run);

// The rows of a range, thinned so that no spike is lost, in the form of the event `samples`. If the
// range has more than 256 MiB of rows, only some rows are read, and `left_out` says so
// (docs/web.md).
// Parameters of the request: `columns`; `from_ns` and `to_ns` on the recording's clock; `points`:
// the maximum number of points (default 2000).
// Errors: invalid_argument; not_found for a column that is not recorded; failed_precondition if
//         nothing was recorded; those of reading the files.
Result<nlohmann::json> recorded_past(const Parts& parts, const http::Request& request);

}  // namespace kymo::daemon
