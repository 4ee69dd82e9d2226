#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Deletes checkpoints and jobs.
//
// The store first sets the state of a checkpoint to `deleting`. Then the images are renamed, and
// only then files are removed. So a checkpoint that is half removed never looks complete. If kymod
// is killed meanwhile, the next kymod continues. Only what a dump made is removed: if somebody else
// put a file into the directory of a checkpoint, the file and the directory stay.
//
// Threads: any. delete_target() works on a thread of its own, and answers without it if a disk stalls.
// Errors:  invalid_argument: no target was given.
//          unavailable: a disk does not answer. The message says whether the deletion goes on when it does. Or a CRIU
//          that cannot end holds the process that was dumped.
//          not_found: no such job or checkpoint.
//          failed_precondition: the job runs, the checkpoint is in use, or the job has complete
//          checkpoints and the request does not include them.
//          permission_denied: other users could lead the deletion to other files.
//          data_loss: the checkpoint's record is damaged, so nobody knows what is in the directory.
//          A checkpoint that is refused stays in the list. The others of the request are deleted.

Result<v1::DeleteResponse> delete_target(const Parts& parts, const v1::DeleteRequest& request);

// The parts of kymod that a deletion uses.
struct DeletionParts {
  explicit DeletionParts(const Parts& parts)
      : DeletionParts(parts.store, parts.claims, parts.config.state_dir, parts.foreign) {}
  DeletionParts(store::Store& all, Claims<std::string>& claimed, const std::string& folder,
                const ForeignFiles& reader)
      : store(all), claims(claimed), state_dir(folder), foreign(reader) {}

  store::Store& store;
  Claims<std::string>& claims;
  const std::string& state_dir;
  const ForeignFiles& foreign;
  // Called before something is changed. Null: nothing is asked. If it fails, nothing is deleted, and its error is
  // that of the deletion.
  std::function<Result<void>()> begins = nullptr;
};

// Deletes one checkpoint. Adds to `warnings` what could not be removed, and why. Returns false if its
// directory is gone or holds something else: then only the store's entry is removed.
Result<bool> delete_checkpoint(const DeletionParts& parts, const store::Checkpoint& checkpoint,
                               std::vector<std::string>& warnings);

// Finishes, at the start of kymod, the deletions that an earlier kymod had begun.
Result<void> finish_deletions(const DeletionParts& parts);

// Whether kymod chose the directory itself: it is directly in `state_dir`/checkpoints.
bool below_state_dir(const std::string& state_dir, const std::string& directory);

}  // namespace kymo::daemon
