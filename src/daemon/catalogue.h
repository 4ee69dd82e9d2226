#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What is kept of checkpoints and of what became of jobs, as the API shows it.
//
// Threads: any. Errors: the store's; not_found: no such job or checkpoint.

Result<v1::CheckpointsResponse> list_checkpoints(const Parts& parts,
                                                 const v1::CheckpointsRequest& request);
Result<v1::HistoryResponse> history_of(const Parts& parts, const v1::HistoryRequest& request);

Result<v1::InspectResponse> inspect(const Parts& parts, const v1::InspectRequest& request);

// By id or directory; of several that lay in one directory the newest. Errors: not_found.
Result<store::Checkpoint> find_checkpoint(store::Store& store, const std::string& id_or_directory);

// `job`: the name of the checkpoint's, where it has one.
v1::Checkpoint to_api(const store::Checkpoint& checkpoint, const std::string& job);

}  // namespace kymo::daemon
