#pragma once

#include <sys/types.h>

#include <cstddef>

#include "kymo/result.h"

namespace kymo::criu {

// CRIU maps code of its own, the parasite, into the processes that it dumps
// (compel/src/lib/infect.c). It unmaps the parasite when it lets a process go. A CRIU that is
// killed leaves these mappings behind, some more each time. They do nothing, but they are
// executable, and each later dump has them in its images.
//
// This function unmaps them in a process that no CRIU traces any more, and returns how many
// mappings there were. It stops the process for about a millisecond and makes it call munmap(2), as
// a debugger would, with the system call instruction of its vdso. It writes to no code of the
// process. It waits for a thread that still runs in the mappings.
//
// Threads: any. Needs the right to trace the process.
// Errors:  failed_precondition if the process is stopped or runs no 64-bit code of x86-64;
//          unavailable if it is traced; deadline_exceeded if a thread stays in the mappings, so
//          that the process does not run its own program; the system's. After an error, the process
//          runs on as before, with the mappings.
// Cost:    if there are no such mappings, one read of the list of mappings; else a thread. Blocks
//          for at most five seconds, or longer if the process gets no processor.
Result<std::size_t> remove_parasite(pid_t pid);

}  // namespace kymo::criu
