#pragma once

#include <cstdint>
#include <string>

#include "daemon/parts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Gives the oldest part of a file, from which somebody else appends, back to the file system where
// it takes more than `most` bytes of the disk: a quarter of that more than need be, so that it is
// seldom done. No byte that stays moves, and none is lost that is written meanwhile: the file keeps
// its length, and what is gone reads as zeros. CRIU restores its writer as before. Where the file
// system cannot do that the file is emptied. Returns the bytes that were given back.
//
// Threads: any. Errors: the file cannot be opened or cut.
Result<std::uint64_t> bound_output(const std::string& path, std::uint64_t most);

// The same for the output of every job that kymod started, as --job-output-bytes says, with a line
// in the log for each. Threads: one. Cost: two system calls a file.
void bound_job_outputs(const Parts& parts);

}  // namespace kymo::daemon
