#pragma once

#include <string>

#include "daemon/database/store.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What a killed kymod was about to begin.
//
// settle_unstarted_jobs() finds a job that was being started by its output file, or forgets it.
//
// remove_unlisted_folders() removes a folder in `state_dir`/checkpoints that was made for a dump
// which never began, unless the store lists it. A folder with images or a record stays.
//
// Threads: one, before any request.
// Errors:  those of the store and of the files.
Result<void> settle_unstarted_jobs(store::Store& store);
Result<void> remove_unlisted_folders(store::Store& store, const std::string& state_dir);

}  // namespace kymo::daemon
