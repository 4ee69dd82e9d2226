#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// Ends what is left of a dump or a restore whose caller was killed. What belongs to it is known by
// its having CRIU's log open: CRIU itself, and a process that is being restored until the instant
// in which it resumes.
//
// A CRIU without its caller gives up at its next notification, which can be a long time off: it
// writes all of a process's memory meanwhile, with the process frozen. So it is ended at once,
// where its processes can do without it; but where it is past the last instant at which a caller's
// end undoes its work it is waited for.
//
// Threads: any; blocks for as long as it takes, at most ten seconds. Errors: deadline_exceeded,
// naming a process that would not end.

// `tree`: the processes that are being dumped. They run on, or are gone where the dump was done.
Result<void> end_leftover_dump(const std::string& log_path, const std::vector<pid_t>& tree);
// `tree`: the pids that the images say. Processes that have resumed run on, halves of some are
// ended.
Result<void> end_leftover_restore(const std::string& log_path, const std::vector<pid_t>& tree);

// Detaches what a CRIU that was killed in a restore has left mounted in its work folder (the
// machine's cgroups, in ".criu.cgyard.*"), and removes the empty folders. Call it once that CRIU
// has ended. What cannot be removed stays.
void remove_leftover_mounts(const std::string& work_dir);

}  // namespace kymo::criu
