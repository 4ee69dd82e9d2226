#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

struct ProcessRuntimeOptions {
  // criu.called counts the calls. criu.timeout limits each dump and restore.
  criu::ClientOptions criu;
  // Called when a process that run() or restore() made has ended, also if a dump ended it.
  // `wait_status` is that of waitpid(2). It is called on a thread of the runtime and must be quick.
  // dump() waits for it, so it must not take a lock that is held around dump().
  std::function<void(const ProcessId& process, int wait_status)> exited;
};

// Makes the runtime for plain processes. It uses CRIU.
//
// run() makes a child of the calling process in a session of its own, and restore() makes a child,
// too. The children outlive the calling process and then belong to init. The runtime reaps them by
// pid, and never waits for another child of the calling process.
//
// Threads:   every member from any thread. The runtime has one thread of its own, for reaping.
// Ownership: the destructor ends the reaping and does not touch the processes.
// Errors:    after a failed dump() the process runs on, and the images directory holds no image.
//            The runtime checks that the process runs, and continues it if it was left stopped. If
//            that fails, too, the error says so. A process that was stopped before the dump stays
//            stopped. If CRIU dies after it has written all images and ended the process, the dump
//            has succeeded, with a warning.
std::unique_ptr<Runtime> make_process_runtime(ProcessRuntimeOptions options);

}  // namespace kymo::runtime
