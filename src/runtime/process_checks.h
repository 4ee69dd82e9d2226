#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "criu/pstree.h"
#include "kymo/result.h"
#include "probe/process.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// A process that is to be dumped, as it was before.
struct DumpTarget {
  probe::Process process;
  std::vector<ProcessId> tree;  // it and its descendants, itself first
  std::vector<pid_t> stopped;   // threads of its tree that were stopped already
};

// What a dump needs, looked at before CRIU is asked, so that each refusal is one clear line.
Result<DumpTarget> check_dump(const DumpSpec& spec);

// What is left until the deadline, for CRIU; 0 where there is none. Errors: deadline_exceeded.
Result<std::chrono::milliseconds> time_left(const DumpSpec& spec);

// What a restore needs: whole images, and every pid of theirs free. Returns the processes, the root
// first.
Result<std::vector<criu::ImageProcess>> check_restore(const RestoreSpec& spec);

// After a failed dump: whether every thread of the process that could run before can do so. Waits a
// little for CRIU's traces to go, and sends SIGCONT to what lasts.
Result<void> ensure_running(const DumpTarget& before);

}  // namespace kymo::runtime
