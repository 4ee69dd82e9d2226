#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/http/server.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What the page shows of jobs, checkpoints, their recordings and the history (docs/web.md).
//
// Threads: any.
// Errors:  invalid_argument; not_found; those of reading.

Result<nlohmann::json> stored_jobs(const Parts& parts);
// What the machine and the running jobs do now.
Result<nlohmann::json> live_figures(const Parts& parts);
// Parameter `job`: name or id; empty: the checkpoints of all jobs.
Result<nlohmann::json> stored_checkpoints(const Parts& parts, const http::Request& request);
// The facts of one checkpoint, CRIU's statistics and phases, and the name, marks and timing tree of
// each of its recordings. Parameter `id`.
Result<nlohmann::json> stored_checkpoint(const Parts& parts, const http::Request& request);
// The comparison of two checkpoints. Parameters `before` and `after`: their ids.
Result<nlohmann::json> stored_comparison(const Parts& parts, const http::Request& request);
// Parameters `job`; `kind`: dumps or restores; `metric`: duration, frozen, bytes or throughput.
Result<nlohmann::json> stored_history(const Parts& parts, const http::Request& request);
// The page of `kymo report --html` for one recording. Parameters: `checkpoint`: an id, and `name`:
// one of its recordings; or `snapshot`: the name of a snapshot.
Result<std::string> stored_recording(const Parts& parts, const http::Request& request,
                                     const std::string& nonce);

}  // namespace kymo::daemon
