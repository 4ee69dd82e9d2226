#pragma once

#include <memory>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// Restores a process from a checkpoint of kymod or from a bare directory of CRIU images. kymod does
// not write into a bare directory, or into a checkpoint that other users could redirect: the log
// and the recording then go below the state directory.
// `timing`: the request's timing tree, which goes into its recording; null if it is not timed.
//
// Threads: any; blocks until the process runs, or until the request was given up because a disk does not answer
//          (Handover). Only one restore of a directory runs at a time.
// Errors:  one line; nothing of the process is left running.
Result<v1::RestoreResponse> restore(const Parts& parts, const v1::RestoreRequest& request,
                                    std::shared_ptr<ScopeTree> timing);

}  // namespace kymo::daemon
