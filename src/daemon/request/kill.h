#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Sends a signal to the process of a running job. The signal goes through a pidfd, so another
// process that has got the same pid since then never receives it.
//
// Threads: any.
// Errors:  invalid_argument: no such signal.
//          not_found: no such job, or its process is gone.
//          failed_precondition: the job does not run, or is being started or dumped.
Result<v1::KillResponse> kill_job(const Parts& parts, const v1::KillRequest& request);

// The same for a process instead of a job.
Result<void> signal_process(const runtime::ProcessId& process, int signal);

}  // namespace kymo::daemon
