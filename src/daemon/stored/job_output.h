#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/database/store.h"
#include "daemon/request/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Frees the disk space of the oldest part of a file to which another process appends, if the file
// takes more than `most` bytes of the disk. Three quarters of `most` stay, so that this is rarely
// needed. Returns the bytes that were freed.
//
// The freed part becomes a hole, which reads as zeros. The file keeps its length and the rest stays
// in place. So no byte is lost that is written meanwhile, and CRIU can restore the process that
// writes. If the file system cannot make holes, the file is emptied instead.
//
// Threads: any.
// Errors:  the file cannot be opened or cut.
Result<std::uint64_t> bound_output(const std::string& path, std::uint64_t most);

// Calls bound_output() for the output files of every running job that kymod started, with the limit
// of --job-output-bytes, and for those of processes that are no longer jobs (kymo release). Logs a
// line for each file that was cut.
// Threads: one.
// Cost:    open, fstat and close for each file that is below the limit.
void bound_job_outputs(const Parts& parts);

// The output files in `state_dir`/jobs of processes that are no longer jobs: those in the folders
// that have the name of none of these jobs.
std::vector<std::string> outputs_of_released(const std::string& state_dir,
                                             const std::vector<store::Job>& jobs);

}  // namespace kymo::daemon
