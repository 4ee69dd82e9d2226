#pragma once

#include <cstddef>
#include <string>

#include "kymo/export.h"
#include "kymo/result.h"

namespace kymo {

struct CounterFileOptions {
  unsigned mode = 0600;      // permissions of the file: 0644 lets everybody read it
  std::size_t threads = 64;  // threads with cells of their own: 1 to 4096
};

// Publishes the counters of this process in a mapped file at `path`. Everybody with read permission
// can read the file while the process runs, stands still or is frozen (`kymo record -p PID`,
// docs/formats.md).
//
// Call it once, before any thread adds to a counter, because the cells of a thread never move. You
// can register counters before and after the call. The file does not contain callbacks, because
// only this process can run them. After a fork without exec, the child counts in its own memory.
// Counter::add() costs the same as without a file. If more than `threads` threads run at once, the
// additional threads share cells. Each of their adds takes a lock and does an atomic addition.
//
// The file stays when the process ends. The next program that publishes at this path replaces it.
//
// Threads: any.
// Memory:  512 KiB, 32 KiB for each of `threads`, and 32 KiB for the shared cells. The whole file
//          is allocated on its disk at once.
// Errors:  failed_precondition if something was added already, or if the counters are published
//          already; already_exists if a running program publishes at `path`, or if the file is not
//          a counter file; invalid_argument for `threads`; resource_exhausted; those of the folder.
KYMO_API Result<void> publish_counters(const std::string& path,
                                       const CounterFileOptions& options = {});

}  // namespace kymo
