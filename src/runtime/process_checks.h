#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
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

// Whether kymod may look after this process: it runs, is a program's and is ours to signal, and is
// neither init, nor this program, nor one that started it. Errors: one line, `tried` first.
Result<probe::Process> check_program(const std::string& tried, const ProcessId& id);

// Whether it can be dumped at all: it runs, it is a program's, it is neither this one nor one that
// started it, and, of a plain process, it is not frozen and needs no terminal of another. Touches
// nothing. Errors: one line with what to do.
Result<probe::Process> check_target(const DumpSpec& spec);

// The same, and whether the directories are as a dump needs them. Returns what is to be dumped.
Result<DumpTarget> check_dump(const DumpSpec& spec);

// What is left until the deadline, for CRIU; 0 where there is none. Errors: deadline_exceeded.
Result<std::chrono::milliseconds> time_left(const DumpSpec& spec);

// What a restore needs of the images: they are whole, and every pid of theirs is free. Returns the
// processes, the root first.
Result<std::vector<criu::ImageProcess>> check_images(const RestoreSpec& spec);
// The same, and whether the work directory is there.
Result<std::vector<criu::ImageProcess>> check_restore(const RestoreSpec& spec);
// Their pids, and those of their threads.
std::set<pid_t> ids_of(const std::vector<criu::ImageProcess>& tree);

// After a failed dump: whether every thread of the process that could run before can do so. Waits a
// little for CRIU's traces to go, and sends SIGCONT to what lasts.
Result<void> ensure_running(const DumpTarget& before);

}  // namespace kymo::runtime
