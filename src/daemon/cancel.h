#pragma once

#include <chrono>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Ends the dumps and restores that run of a request_id, a job or a pid, and waits until they have
// ended. Threads: any; blocks the caller, seconds as a rule. Errors: invalid_argument: no target
// was given; not_found: none runs; deadline_exceeded: one has not ended within the time.
Result<v1::CancelResponse> cancel(const Parts& parts, const v1::CancelRequest& request,
                                  std::chrono::milliseconds within = std::chrono::minutes(1));

}  // namespace kymo::daemon
