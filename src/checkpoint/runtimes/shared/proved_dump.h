#pragma once

#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Runs the command of a dump that looks for criu on the PATH that it gets. When CRIU has written all images,
// DumpSpec::prove is called, while the processes stand still. If it returns an error, CRIU fails. If the spec has none,
// the command is only run.
//
// CRIU needs to be 4.1 or later: older ones run no action script beside the notifications of a runtime, and fail.
//
// Threads: any; blocks until the command has ended. A thread of its own calls `prove`.
// Errors:  that of `prove`; those of run_command().
Result<CommandOutcome> run_proved(const Command& command, const DumpSpec& spec);

// Calls DumpSpec::prove of a dump whose images are written, if there is one. For a runtime that starts CRIU without
// that PATH: it makes the processes stand still meanwhile.
Result<void> prove(const DumpSpec& spec);

}  // namespace kymo::runtime
