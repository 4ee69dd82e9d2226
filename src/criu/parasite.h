#pragma once

#include <sys/types.h>

#include <cstddef>

#include "kymo/result.h"

namespace kymo::criu {

// CRIU maps code of its own into what it dumps, its parasite (compel/src/lib/infect.c), and unmaps
// it when it lets go. A CRIU that is killed leaves the mappings, some more each time: they do
// nothing, but they are executable, and each later dump has them in its images.
//
// Unmaps what is left of them in a process that no CRIU traces any more, and returns how many
// mappings that were. The process is stopped for about a millisecond, and calls munmap(2) itself,
// from a system call of its vdso, as a debugger would have it do; none of its code is written to. A
// thread that still runs in them is waited for.
//
// Errors: failed_precondition: it is stopped, or no process of x86-64; unavailable: it is traced,
// or a thread stays in that code; the system's. It runs on as it was, with the mappings.
// Threads: any. Needs the right to trace it. Cost: one look at its mappings where there is nothing,
// else a thread. Blocks for five seconds at most, but for what gets no processor.
Result<std::size_t> remove_parasite(pid_t pid);

}  // namespace kymo::criu
