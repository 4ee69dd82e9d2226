#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What is kept of checkpoints and of what became of jobs, as the API shows it.
//
// Threads: any. Errors: the store's; not_found: no such job.

Result<v1::CheckpointsResponse> list_checkpoints(const Parts& parts,
                                                 const v1::CheckpointsRequest& request);
Result<v1::HistoryResponse> history_of(const Parts& parts, const v1::HistoryRequest& request);

// `job`: the name of the checkpoint's, where it has one.
v1::Checkpoint to_api(const store::Checkpoint& checkpoint, const std::string& job);

}  // namespace kymo::daemon
