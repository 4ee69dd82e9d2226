#pragma once

#include <chrono>
#include <vector>

#include "base/file.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Locks a process for a dump, or for repairing what a dump has left in it, so that two kymods of one machine, or two
// requests of one, never do that at the same time: the one that comes second would take CRIU's work for what a killed
// CRIU has left. The lock is that of flock(2) on /proc/PID/mem: an exclusive one of the process, and a shared one of each
// process that it descends from. So a process and one below it are not dumped at the same time either. It leaves no
// file, only who may trace a process can lock it, such as the process itself, and it ends with the descriptors, so also
// with a kymod that is killed. Who sees another mount of /proc, for example in a container, does not see it.
using DumpLock = std::vector<FileDescriptor>;

// Waits at most `patience` for somebody else's lock to end. Processes above the process that cannot be opened are
// not locked.
// Threads: any.
// Errors:  failed_precondition: somebody else holds the lock; the system's, if the process cannot be opened.
Result<DumpLock> lock_for_dump(const ProcessId& process, std::chrono::milliseconds patience = {});

}  // namespace kymo::runtime
