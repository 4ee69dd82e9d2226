#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// A scratch directory is on a memory file system. CRIU writes its log and statistics there while it
// runs. If they were on a disk that stalls, CRIU would wait there, could not be killed, and would
// hold its processes as long.
//
// Threads: any, one for each directory.

// The path of the scratch directory with this name, below /run or /dev/shm. It depends only on the
// name and on this machine, so a later kymod finds the directory of a kymod that was killed. Empty if
// neither is a memory file system in which this user may write.
std::string scratch_path(const std::string& name);

// Makes spec.scratch_dir, calls `dump` with that directory as its work directory, and moves the files
// to spec.work_dir, which the texts of the outcome then name. If the disk there does not answer, the
// move goes on in the background. If there is no scratch directory, `dump` works in spec.work_dir.
// Errors: those of `dump`.
Result<DumpOutcome> in_scratch(const DumpSpec& spec,
                               const std::function<Result<DumpOutcome>(const DumpSpec&)>& dump);

// The paths at which a dump may have a file with this name: in its scratch and its work directory.
std::vector<std::string> in_work_dirs(const DumpSpec& spec, const std::string& name);

// Moves what a kymod that was killed has left in spec.scratch_dir to spec.work_dir. Moves nothing if
// one of the two is empty. Waits at most `patience`, and then goes on in the background.
void keep_scratch(const DumpSpec& spec, std::chrono::milliseconds patience);

}  // namespace kymo::runtime
