#pragma once

#include <chrono>
#include <cstdint>
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

// Whether the images in a directory are whole. CRIU writes inventory.img last, and ends no process
// before that. So if it is missing, the other images are of no use. If the directory cannot be
// looked at, the answer is `unknown`. Waits until the disk answers.
enum class Images : std::uint8_t { whole, not_whole, unknown };
Images wait_for_images_in(const std::string& images_dir);

// Removes CRIU's code from processes that CRIU was dumping when it was killed (criu/parasite.h).
// Call it after CRIU has ended, when the processes run.
// Errors: the error of the first process that still has the code. The code does nothing there.
Result<void> unmap_criu(const std::vector<pid_t>& tree);

// Finds out what a dump has left in which CRIU failed with `error`, and lets the processes run on if
// they have not ended. Images are removed only if the process was seen to run, or if they are
// certainly not whole. There are three cases:
// - The process has ended and every image was written. Then the images are the checkpoint. Ends what
//   is left of the processes, sets `after_failure`, adds a warning, and returns success.
// - It was not seen to run, and it is not known whether its images are whole. Sets `unconfirmed`, keeps
//   the images, and returns success. Only a later look can tell more.
// - Otherwise returns `error`, with a clause that says what became of the process. The images are
//   removed.
//
// Call it after CRIU has ended or was killed: only then have all signals that CRIU sent arrived.
// Blocks for some seconds at most. A removal that takes longer goes on in the background.
Result<void> conclude_failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error,
                                  DumpOutcome& outcome);

// Whether images of a failed dump are still being removed from this directory, for example because
// its disk stalls.
bool is_being_cleared(const std::string& images_dir);
// Waits until none are, however long that takes.
void wait_until_cleared(const std::string& images_dir);

// Waits until a dumped process has been reaped or is a zombie, and gives its network namespace back to others who live
// there. What fails is a warning.
void conclude_ended_dump(const DumpSpec& spec, const DumpTarget& before, DumpOutcome& outcome);

// Read CRIU's statistics at `path` into the outcome, or add a warning if there are none.
void take_statistics(const std::string& path, DumpOutcome& outcome);
void take_statistics(const std::string& path, RestoreOutcome& outcome);

// Returns the pid with the start time of its process, which is 0 if the process is gone.
ProcessId identify(pid_t pid);

}  // namespace kymo::runtime
