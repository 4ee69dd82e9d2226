#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/database/store.h"
#include "daemon/request/parts.h"

namespace kymo::daemon {

// The bounds on checkpoints below the state directory; 0 means no bound.
struct SpaceBound {
  std::uint64_t bytes = 0;  // of the images of all checkpoints
  std::uint64_t count = 0;  // of checkpoints of each job, and of each process that is no job
};

// The checkpoints below the state directory that must be deleted to keep the bounds:
// - first failed ones, oldest first: the newest `count` of each job stay (ten if `count` is 0), and as
//   many of all processes that are no job. They go also if there is no bound;
// - then complete ones, oldest first, but never the newest complete one of a job (or of a process, if
//   there is no job), in whatever directory that one lies. A pid is no process: others get it later.
// `all`: oldest first.
std::vector<store::Checkpoint> beyond_bound(const std::vector<store::Checkpoint>& all,
                                            const std::string& state_dir, const SpaceBound& bound);

// How many of these checkpoints, which beyond_bound() returned, are about to be deleted, and why: one line for the log.
// Empty if there are none.
std::string text_of_removal(const std::vector<store::Checkpoint>& removed, const SpaceBound& bound);

// The same of those that make_room() deletes now. Threads: any.
std::string planned_removal(const Parts& parts);

// Deletes checkpoints as --keep-bytes and --keep-count say, and old failed ones. Logs each. Those in use stay until
// the next call. Returns what went wrong; empty if nothing did.
// Threads: one.
// Cost:    a look into the store, and removing the files.
std::string make_room(const Parts& parts);

}  // namespace kymo::daemon
