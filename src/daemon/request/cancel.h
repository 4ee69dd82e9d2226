#pragma once

#include <chrono>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Ends the running dumps and restores of a request_id, a job or a pid, and waits until they have
// ended.
//
// Threads: any; blocks the caller, usually for seconds.
// Errors:  invalid_argument: no target was given.
//          not_found: no dump or restore of the target runs.
//          deadline_exceeded: a request did not end `within` this time, or its own caller was answered
//          before its end, because a disk does not answer, or kymod stops.
Result<v1::CancelResponse> cancel(const Parts& parts, const v1::CancelRequest& request,
                                  std::chrono::milliseconds within = std::chrono::minutes(1));

}  // namespace kymo::daemon
