#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Makes kymod forget a running job. Its process or container runs on, and its checkpoints and
// output files stay.
//
// Threads: any.
// Errors:  not_found: no such job; failed_precondition: it does not run, or it is being started or
//          dumped.
Result<v1::ReleaseResponse> release_job(const Parts& parts, const v1::ReleaseRequest& request);

}  // namespace kymo::daemon
