#pragma once

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The stored checkpoints, jobs and histories, in the form of the API.
//
// Threads: any.
// Errors:  those of the store; not_found: no such job or checkpoint.
//          history_of(): invalid_argument: several command lines of the program have a history.

Result<v1::CheckpointsResponse> list_checkpoints(const Parts& parts,
                                                 const v1::CheckpointsRequest& request);
Result<v1::HistoryResponse> history_of(const Parts& parts, const v1::HistoryRequest& request);

Result<v1::InspectResponse> inspect(const Parts& parts, const v1::InspectRequest& request);

// Finds a checkpoint by its id or directory. If several were in the same directory, returns the
// newest.
// Errors: not_found.
Result<store::Checkpoint> find_checkpoint(store::Store& store, const std::string& id_or_directory);

// `job`: the name of the checkpoint's job; empty if it has none.
v1::Checkpoint to_api(const store::Checkpoint& checkpoint, const std::string& job);

}  // namespace kymo::daemon
