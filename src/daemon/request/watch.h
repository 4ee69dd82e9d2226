#pragma once

#include <functional>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/progress.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Receives the updates of one watcher.
struct WatchOutput {
  // May block for any time, because nothing waits for a watcher. Returns false if the reader has
  // gone.
  std::function<bool(const v1::Progress& progress)> write;
  // Whether the reader has gone; called between updates.
  std::function<bool()> gone;
};

// Serves one watcher until the requests that it watches have ended, and writes the outcome of each
// once. Blocks.
//
// Errors: invalid_argument; not_found: no such request runs or has run lately; unavailable: the
//         daemon stops; resource_exhausted: there are ProgressBoard::kMaxWatchers already.
Result<void> watch(ProgressBoard& board, const v1::WatchRequest& request, const WatchOutput& out);

}  // namespace kymo::daemon
