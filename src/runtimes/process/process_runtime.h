#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "criu/client.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

struct ProcessRuntimeOptions {
  // criu.called counts the calls; criu.timeout bounds each dump and restore.
  criu::ClientOptions criu;
  // A process that run() or restore() made has ended; `wait_status` as from waitpid(2). Called on a
  // thread of the runtime's own; must be quick. A process that a dump ended is told of too, before
  // that dump() returns: take no lock here that is held around dump().
  std::function<void(const ProcessId& process, int wait_status)> exited;
};

// Plain processes through CRIU.
//
// run() and restore() make children of the calling process, in sessions of their own; they outlive
// it and then belong to init. They are reaped here, by pid: no other child of the process is ever
// waited for.
//
// Threads:   every member from any thread; one thread of its own for reaping.
// Ownership: the destructor ends the reaping and leaves every process alone.
// Errors:    of dump(): after each the process runs on (it is looked at, and started again where it
// was
//            left stopped), and the images directory holds no image. Where even that fails, the
//            error says so. A process that was stopped before the dump stays so. Where CRIU dies
//            after it has written every image and ended the process, the dump has succeeded, with a
//            warning.
std::unique_ptr<Runtime> make_process_runtime(ProcessRuntimeOptions options);

}  // namespace kymo::runtime
