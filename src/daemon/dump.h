#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// Dumps a process into a checkpoint directory, step by step (the table of steps is in dump.cc).
//
// Threads: any; blocks until the images are whole. Different processes are dumped side by side; a
//          second dump of the same process is refused.
// Errors:  one line. The process runs on, and nothing in the directory looks like a checkpoint.
// `timing`: the request's tree, which goes into the checkpoint's record; null: it is not timed.
Result<v1::DumpResponse> dump(const Parts& parts, const v1::DumpRequest& request,
                              const ScopeTree* timing);

}  // namespace kymo::daemon
