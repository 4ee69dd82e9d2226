#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Removing checkpoints and jobs. Images lose their name before anything is removed, and the store
// says `deleting` before that: what is half gone never looks whole, and a kymod that is killed
// meanwhile goes on where it was. Only what a dump made is removed: a file that somebody else put
// into a checkpoint's directory stays, and so does the directory then.
//
// Threads: any. Errors: not_found; failed_precondition: a job that runs, a checkpoint in use.

Result<v1::DeleteResponse> delete_target(const Parts& parts, const v1::DeleteRequest& request);

// One checkpoint; what could not be removed, and why, is added to `warnings`.
Result<void> delete_checkpoint(store::Store& store, Claims<std::string>& claims,
                               const std::string& state_dir, const store::Checkpoint& checkpoint,
                               std::vector<std::string>& warnings);

// At the daemon's start: brings deletions to an end that an earlier daemon had begun.
Result<void> finish_deletions(store::Store& store, const std::string& state_dir);

// Whether the directory is one that kymod chose itself.
bool below_state_dir(const std::string& state_dir, const std::string& directory);

}  // namespace kymo::daemon
