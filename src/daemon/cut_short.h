#pragma once

#include <functional>
#include <string>

#include "kymo/result.h"
#include "runtimes/table.h"
#include "store/store.h"

namespace kymo::daemon {

// At the daemon's start: brings to an end what an earlier daemon, killed, left half done.
//
// A dump: what is left of it is ended, and what it left frozen goes on. Where CRIU had written
// everything and the process is gone, the images are the process now and are published. Where the
// process runs on they are worth nothing and are removed. Where neither is sure they stay in
// images.partial. A line in the log says which.
//
// A job that was being started: found again by its output file, or forgotten.
//
// A folder in `state_dir`/checkpoints that was made for a dump which had not begun, and which
// nothing lists: removed. One with images or a record stays.
//
// `settle` is Runtime::settle_dump() of the runtime of this kind.
// Threads: one, before any request. Errors: the store's.
using SettleDump = std::function<Result<void>(runtime::Kind kind, const runtime::DumpSpec& spec)>;
Result<void> close_cut_short_dumps(store::Store& store, const SettleDump& settle);
Result<void> settle_unstarted_jobs(store::Store& store);
Result<void> remove_unlisted_folders(store::Store& store, const std::string& state_dir);

}  // namespace kymo::daemon
