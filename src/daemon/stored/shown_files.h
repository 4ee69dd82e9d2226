#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What callers are shown of files that only root may read (docs/security.md). Images are not among it.
//
// Threads: any.
// Errors:  not_found: no such job or checkpoint; permission_denied: the file may have memory of the
//          process; failed_precondition: kymod does not have the output of the job; those of the disk.

Result<v1::ReadCheckpointResponse> read_checkpoint(const Parts& parts,
                                                   const v1::ReadCheckpointRequest& request);
Result<v1::ReadOutputResponse> read_output(const Parts& parts,
                                           const v1::ReadOutputRequest& request);

}  // namespace kymo::daemon
