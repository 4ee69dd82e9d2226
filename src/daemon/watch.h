#pragma once

#include <functional>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/progress.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Where a watcher's updates go.
struct WatchOutput {
  // May block for as long as its reader likes: nobody waits for a watcher. False: it has gone.
  std::function<bool(const v1::Progress& progress)> write;
  // Asked between updates.
  std::function<bool()> gone;
};

// Serves one watcher until what it watches has ended, and says each outcome once. Blocks.
//
// Errors: invalid_argument; not_found: nothing of the kind runs, or has run lately; unavailable:
// the daemon stops; resource_exhausted: ProgressBoard::kMostWatchers watch already.
Result<void> watch(ProgressBoard& board, const v1::WatchRequest& request, const WatchOutput& out);

}  // namespace kymo::daemon
