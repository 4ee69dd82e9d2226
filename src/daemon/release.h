#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Makes a running job none again: its process or container runs on, untouched, and its checkpoints
// and the files of its output stay.
//
// Threads: any. Errors: not_found: no such job; failed_precondition: it does not run, or is being
// dumped.
Result<v1::ReleaseResponse> release_job(const Parts& parts, const v1::ReleaseRequest& request);

}  // namespace kymo::daemon
