#pragma once

#include <chrono>
#include <string>

#include "criu/client.h"
#include "kymo/result.h"
#include "runtime/process_checks.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// The work that every runtime does after a dump or restore.

// How long a process that CRIU has killed may take to end. The kernel must free all its memory.
inline constexpr std::chrono::milliseconds kGoneWithin{10'000};

// Removes the log or statistics of an earlier run, so that they are not read again.
void forget(const std::string& path);

// Whether the dump is complete although CRIU failed. CRIU writes all images, inventory.img last,
// and only then ends the processes, the root first. If CRIU died after that and before its answer,
// the checkpoint is complete, and nothing else is left of the processes. Call it after CRIU has
// ended: only then have all signals that CRIU sent arrived.
bool dump_completed(const DumpSpec& spec, const DumpTarget& before);
// Ends the processes that a CRIU that died had not ended yet. They are in the images, too.
void end_leftover_processes(const DumpTarget& before);

// Removes CRIU's code from processes that CRIU was dumping when it was killed (criu/parasite.h).
// Call it after CRIU has ended, when the processes run.
// Errors: the error of the first process that still has the code. The code does nothing there.
Result<void> unmap_criu(const std::vector<pid_t>& tree);

// Cleans up after a failed dump: gives the processes their network back, makes sure that they run,
// and removes the images. Returns the error with a note whether the processes run. Waits at most
// two seconds for the removal, which then goes on in the background.
Error clean_up_failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error);

// Whether images of a failed dump are still being removed from this directory, for example because
// its disk stalls.
bool is_being_cleared(const std::string& images_dir);

// Waits until a dumped process has been reaped or is a zombie.
Result<void> wait_gone(const ProcessId& process);

// Read CRIU's statistics at `path` into the outcome, or add a warning if there are none.
void take_statistics(const std::string& path, DumpOutcome& outcome);
void take_statistics(const std::string& path, RestoreOutcome& outcome);

// Returns the pid with the start time of its process, which is 0 if the process is gone.
ProcessId identify(pid_t pid);

}  // namespace kymo::runtime
