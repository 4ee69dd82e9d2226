#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/parts.h"
#include "store/store.h"

namespace kymo::daemon {

// How many checkpoints are kept below the state directory; 0: no bound.
struct SpaceBound {
  std::uint64_t bytes = 0;  // of images, in all
  std::uint64_t count = 0;  // of each job
};

// Which checkpoints have to go, the oldest first. Of those that failed, of each job the newest as
// many as `count` stay (ten where it is 0). Then whole ones that kymod chose the directory of,
// never the newest whole one of a job (or of a pid, where there is no job), wherever that lies.
// `all`: oldest first.
std::vector<store::Checkpoint> beyond_bound(const std::vector<store::Checkpoint>& all,
                                            const std::string& state_dir, const SpaceBound& bound);

// Deletes them as --keep-bytes and --keep-count say, with a line in the log; those in use stay
// until the next time. Returns what went wrong, empty where nothing did.
// Threads: one. Cost: a look into the store, and removing the files.
std::string make_room(const Parts& parts);

}  // namespace kymo::daemon
