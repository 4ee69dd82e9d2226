#pragma once

#include <chrono>
#include <string>

#include "criu/client.h"
#include "kymo/result.h"
#include "runtime/process_checks.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// What every runtime does once a dump or restore is over.

// How long a process that CRIU has killed may take to be gone: it has all its memory to give back.
inline constexpr std::chrono::milliseconds kGoneWithin{10'000};

// An earlier run's log or statistics must not pass for this one's.
void forget(const std::string& path);

// CRIU ends the processes, the root first, only once every image is written (and inventory.img is
// the last): where it died between that and its answer, the checkpoint is whole and all that is
// left of them. CRIU must be gone: only then has every signal that it sent arrived.
bool was_dumped_after_all(const DumpSpec& spec, const DumpTarget& before);
// Ends what a CRIU that died had not come to yet: it is in the images, too.
void end_the_rest(const DumpTarget& before);

// What CRIU is told of these.
criu::SharedOptions shared_options(const CheckpointOptions& options);

// Takes CRIU's code out of processes that it was dumping when it was killed (criu/parasite.h); call
// it once CRIU has ended and they run. Errors: of the first that still has it; it does nothing
// there.
Result<void> unmap_criu(const std::vector<pid_t>& tree);

// After a failed dump: gives what was to be dumped its network back, sees that it runs on, adds to
// the error whether it does, and removes the images: for two seconds at most, then that goes on by
// itself.
Error let_run_on(const DumpSpec& spec, const DumpTarget& before, Error error);

// Whether images of a failed dump are being removed there, as from a disk that stalls.
bool is_being_cleared(const std::string& images_dir);

// Waits for a dumped process to be gone: reaped, or a zombie.
Result<void> wait_gone(const ProcessId& process);

// The statistics that CRIU left there; a warning where it left none.
void take_statistics(const std::string& path, DumpOutcome& outcome);
void take_statistics(const std::string& path, RestoreOutcome& outcome);

// With the start time that it has now; 0 where it is gone.
ProcessId identify(pid_t pid);

}  // namespace kymo::runtime
