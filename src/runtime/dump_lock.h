#pragma once

#include "base/file.h"
#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Locks a process for a dump, so that two kymods of one machine never dump it at the same time: the one that
// comes second would take CRIU's work for what a killed CRIU has left. The lock is that of flock(2) on
// /proc/PID/mem. It leaves no file, only who may trace the process can hold it, such as the process itself, and it ends
// with the descriptor, so also with a kymod that is killed. Who sees another mount of /proc, for
// example in a container, does not see it.
//
// Threads: any.
// Errors:  failed_precondition: somebody else holds the lock; the system's, if the process cannot be opened.
Result<FileDescriptor> lock_for_dump(const ProcessId& process);

}  // namespace kymo::runtime
