#pragma once

#include <memory>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// Dumps a process into a checkpoint directory, step by step (the table of steps is in dump.cc).
// `timing` is the timing tree of the request, which goes into the checkpoint's record; null if the
// request is not timed.
//
// Threads: any; blocks until the images are complete. Different processes can be dumped at the same
//          time. A second dump of the same process is refused.
// Errors:  one line. The process runs on, and nothing in the directory looks like a checkpoint. Or it is not known
//          yet what became of both, for example because only the rename of complete images failed: then the checkpoint
//          is unconfirmed, and UnconfirmedDumps looks after it.
Result<v1::DumpResponse> dump(const Parts& parts, const v1::DumpRequest& request,
                              std::shared_ptr<ScopeTree> timing);

}  // namespace kymo::daemon
