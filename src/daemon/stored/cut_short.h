#pragma once

#include <functional>
#include <string>

#include "daemon/state/foreign.h"
#include "kymo/result.h"
#include "runtimes/table.h"
#include "store/store.h"

namespace kymo::daemon {

// Cleans up, at the start of kymod, what an earlier kymod left unfinished when it was killed.
//
// close_cut_short_dumps() ends what still runs of a dump, and lets frozen processes go on:
// - If the images have been published, it marks the checkpoint as complete.
// - If CRIU has written all images and the process is gone, it publishes the images and marks the
//   checkpoint as complete: the images are all that is left of the process.
// - If CRIU has written all images and it is not known whether the process still runs, the images
//   stay in images.partial.
// - Otherwise it removes the images.
// A line in the log says what it did. `settle` calls Runtime::settle_dump() of the given kind.
//
// settle_unstarted_jobs() finds a job that was being started by its output file, or forgets it.
//
// remove_unlisted_folders() removes a folder in `state_dir`/checkpoints that was made for a dump
// which never began, unless the store lists it. A folder with images or a record stays.
//
// Threads: one, before any request.
// Errors:  settle_unstarted_jobs(): those of the store. The other two log theirs and go on.
using SettleDump = std::function<Result<void>(runtime::Kind kind, const runtime::DumpSpec& spec)>;
Result<void> close_cut_short_dumps(store::Store& store, const ForeignFiles& foreign,
                                   const SettleDump& settle);
Result<void> settle_unstarted_jobs(store::Store& store);
Result<void> remove_unlisted_folders(store::Store& store, const std::string& state_dir);

}  // namespace kymo::daemon
