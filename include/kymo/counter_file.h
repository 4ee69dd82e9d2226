#pragma once

#include <cstddef>
#include <string>

#include "kymo/export.h"
#include "kymo/result.h"

namespace kymo {

struct CounterFileOptions {
  unsigned mode = 0600;      // who may read it: 0644 is everybody
  std::size_t threads = 64;  // that add to cells of their own; at least 1, at most 4096
};

// Puts this process's counters into a mapped file, which anybody permitted may read while the
// process runs, stands still or is frozen (`kymo record -p PID`, docs/counter-file.md).
//
// Call it once, before the first add of any thread: a thread's cells never move. Counters may be
// registered before and after. Callbacks do not appear: they run in this process alone. After a
// fork without exec the child counts in memory of its own. Counter::add is as without a file; past
// `threads` threads at once the others share cells, at the cost of a lock and an atomic addition.
//
// The file stays when the process ends; the next to publish there takes its place.
// Threads: any. Memory: 32 KiB a thread and 512 KiB, allocated whole on the file's disk at once.
// Errors:  failed_precondition (something was added already; published already), already_exists
//          (a running program's, or no counter file), resource_exhausted, and those of the folder.
KYMO_API Result<void> publish_counters(const std::string& path,
                                       const CounterFileOptions& options = {});

}  // namespace kymo
