#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/parts.h"
#include "http/server.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What the page shows of what is kept: jobs, checkpoints, what became of them (docs/web.md).
//
// Threads: any. Errors: invalid_argument, not_found, and those of reading.

Result<nlohmann::json> stored_jobs(const Parts& parts);
// `job`: its name or id; empty: all.
Result<nlohmann::json> stored_checkpoints(const Parts& parts, const http::Request& request);
// `id`: its facts, CRIU's statistics and phases, and of each of its recordings name, marks and
// timing tree.
Result<nlohmann::json> stored_checkpoint(const Parts& parts, const http::Request& request);
// `before` and `after`: ids.
Result<nlohmann::json> stored_comparison(const Parts& parts, const http::Request& request);
// `job`; `kind`: dumps or restores; `metric`: duration, frozen, bytes or throughput.
Result<nlohmann::json> stored_history(const Parts& parts, const http::Request& request);
// `checkpoint`: its id; `name`: one of its recordings; or `snapshot`: its name. The page of
// kymo report --html.
Result<std::string> stored_recording(const Parts& parts, const http::Request& request,
                                     const std::string& nonce);

}  // namespace kymo::daemon
