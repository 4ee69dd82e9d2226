#pragma once

#include <functional>
#include <string>

#include "daemon/state/foreign.h"
#include "kymo/result.h"
#include "runtimes/table.h"
#include "store/store.h"

namespace kymo::daemon {

// What became of dumps that were not concluded by their request, because kymod was killed, or because
// it could not be known at that time.
//
// close_cut_short_dump() ends what still runs of a dump, and lets frozen processes go on:
// - If the images have been published, it marks the checkpoint as complete. If the machine was started again since,
//   they are verified first.
// - If CRIU has written all images and the process is gone, it publishes the images and marks the
//   checkpoint as complete: the images are all that is left of the process. If the outcome was
//   unconfirmed, or the machine was started again since, the images are verified first, and are kept
//   as they are if they are damaged.
// - If the process runs, it removes the images. It does the same if the images are not whole and the
//   process is gone.
// - If another user could lead what is written to the directory, or removed from it, to another place, it
//   only lets the process go on, and marks the checkpoint as unconfirmed.
// - If the process is being dumped again, it does nothing with the process or the images, and marks the
//   checkpoint as unconfirmed. It locks the process meanwhile, so that no other dump of it begins.
// - Otherwise, if the process is still held, or it cannot be seen whether it runs, or the images
//   cannot be looked at, it marks the checkpoint as unconfirmed and keeps the images.
// If kymod stopped during the dump, it also adds the run to the history that the request could not add.
// A line in the log says what it did. `settle` calls Runtime::settle_dump() of the given kind.
// Returns whether the outcome is known now. Waits as long as the disk of the images does not answer.
//
// settle_old_scratch() moves logs that dumps have left in memory to their checkpoints, and removes images
// there, if the outcome of the dump is known. It does not wait for a disk.
//
// Threads: close_cut_short_dump(): any, one for a checkpoint. settle_old_scratch(): one, before any request.
// Errors:  those of the store and of the files.
using SettleDump = std::function<Result<void>(runtime::Kind kind, const runtime::DumpSpec& spec)>;
Result<bool> close_cut_short_dump(store::Store& store, const ForeignFiles& foreign,
                                  const store::Checkpoint& checkpoint, const SettleDump& settle);
void settle_old_scratch(store::Store& store);
// Whether the outcome of its dump is not known.
bool is_open(const store::Checkpoint& checkpoint);
// Whether it is open because its kymod stopped during the dump, so that no request has counted it.
bool is_lost(const store::Checkpoint& checkpoint);

}  // namespace kymo::daemon
