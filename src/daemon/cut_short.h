#pragma once

#include "kymo/result.h"
#include "store/store.h"

namespace kymo::daemon {

// At the daemon's start: brings to an end what an earlier daemon, killed, left half done.
//
// A dump: where CRIU had written everything and the process is gone, the images are the process now
// and are published. Where the process runs on they are worth nothing and are removed. Where
// neither is sure they stay in images.partial. A line in the log says which.
//
// A job that was being started: found again by its output file, or forgotten.
//
// Threads: one, before any request. Errors: the store's.
Result<void> close_cut_short_dumps(store::Store& store);
Result<void> settle_unstarted_jobs(store::Store& store);

}  // namespace kymo::daemon
