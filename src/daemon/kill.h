#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Sends a running job's process a signal, by a descriptor of that very process: one that has been
// given its pid since is never meant.
//
// Threads: any. Errors: invalid_argument: no such signal; not_found: no such job, or its process is
// gone; failed_precondition: it does not run, or is being dumped.
Result<v1::KillResponse> kill_job(const Parts& parts, const v1::KillRequest& request);

// The same for a process alone.
Result<void> signal_process(const runtime::ProcessId& process, int signal);

}  // namespace kymo::daemon
