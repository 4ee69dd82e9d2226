#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// Restores a process from a checkpoint of ours or from a bare directory of CRIU images (whose log
// and recording then go below the state directory: nothing of anybody else's is written to).
//
// Threads: any; blocks until the process runs. A directory is restored once at a time.
// Errors:  one line; nothing of the process is left running.
// `timing`: the request's tree, which goes into its recording; null: it is not timed.
Result<v1::RestoreResponse> restore(const Parts& parts, const v1::RestoreRequest& request,
                                    const ScopeTree* timing);

}  // namespace kymo::daemon
