#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// The work that every runtime does after a dump or restore.

// How long a process that CRIU has killed may take to end. The kernel must free all its memory.
inline constexpr std::chrono::milliseconds kGoneWithin{10'000};

// Removes the log or statistics of an earlier run, so that they are not read again.
void forget(const std::string& path);

// Removes CRIU's code from processes that CRIU was dumping when it was killed (criu/parasite.h).
// Call it after CRIU has ended, when the processes run.
// Errors: the error of the first process that still has the code. The code does nothing there.
Result<void> unmap_criu(const std::vector<pid_t>& tree);

// Lets the processes of a dump that has failed with `error` run on, and finds out what became of them:
// - If they run, returns `error`, with a clause that says so.
// - Otherwise sets `outcome.failure`, and returns success. What the images are worth decides what follows.
//
// Call it after CRIU has ended or was killed: only then have all signals that CRIU sent arrived.
// Blocks for some seconds at most.
Result<void> conclude_failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error,
                                  DumpOutcome& outcome);

// Waits until a dumped process has been reaped or is a zombie, and gives its network namespace back to others who live
// there. What fails is a warning.
void conclude_ended_dump(const DumpSpec& spec, const DumpTarget& before, DumpOutcome& outcome);

// Read CRIU's statistics at `path` into the outcome, or add a warning if there are none.
void take_statistics(const std::string& path, DumpOutcome& outcome);
void take_statistics(const std::string& path, RestoreOutcome& outcome);

// Returns the pid with the start time of its process, which is 0 if the process is gone.
ProcessId identify(pid_t pid);

// Returns the container whose first process this is. Its id, its name and its bundle are left to the caller.
Container container_of(pid_t pid);

}  // namespace kymo::runtime
