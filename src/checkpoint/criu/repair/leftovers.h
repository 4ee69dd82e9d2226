#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// end_leftover_dump() and end_leftover_restore() end what is left of a dump or restore whose caller
// was killed. They find its processes by CRIU's log, which these have open for writing: CRIU
// itself, and each process that is being restored, until it resumes. So nobody else may be able to make or
// to replace the log: no other user may be able to change a folder of its path, and the log may have no
// other name. A process counts only if it has this very file open, whatever name it used. While the disk of the log does
// not answer, a dump's CRIU is found by what it traces and by its command line.
//
// A CRIU without a caller gives up at its next notification. That can take long, because until then
// it may write all memory of a process, while the process is frozen. So it is killed as soon as its
// processes do not need it. But if CRIU has come so far that it finishes without its caller, these
// functions wait until it ends.
//
// Threads: any. Blocks for at most about ten seconds for a dump, and twenty for a restore.
// Errors:  deadline_exceeded, with a process that does not end, or, for a restore, if the disk of the log does not
//          answer; permission_denied if somebody else could
//          have made the log. Then no process was ended.

// `tree`: the processes that are being dumped. They run on, or they are gone if the dump was
// complete.
Result<void> end_leftover_dump(const std::string& log_path, const std::vector<pid_t>& tree);
// `tree`: the pids from the images. Processes that have resumed run on. Processes that are only
// half restored are killed.
Result<void> end_leftover_restore(const std::string& log_path, const std::vector<pid_t>& tree);

// Finds a CRIU that was killed while it restored a container, and whose runtime still waits for it.
// The runtime does not notice the end of CRIU, because the half-restored processes keep the
// connection open. Returns the pid of the dead CRIU, which its parent has not reaped yet; 0 if
// there is none. A CRIU that ends by itself can look like that for an instant.
// Cost: one look at each process of the machine.
pid_t killed_under_its_runtime(const std::string& log_path);

// Detaches the mounts that a CRIU left in its work folder when it was killed in a restore (the
// machine's cgroups, in ".criu.cgyard.*"), and removes the empty folders. Call it after that CRIU
// has ended. What cannot be removed stays.
void remove_leftover_mounts(const std::string& work_dir);

}  // namespace kymo::criu
