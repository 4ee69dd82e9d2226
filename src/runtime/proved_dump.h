#pragma once

#include "kymo/result.h"
#include "runtime/command.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Runs the command of a dump that starts CRIU with the environment that it gets. When CRIU has written all images,
// DumpSpec::prove is called, while the processes stand still. If it returns an error, CRIU fails.
//
// CRIU reads the variable CRIU_CONFIG_FILE, and needs to be 4.1 or later: older ones run no action script beside the
// notifications of a runtime, and fail.
//
// Threads: any; blocks until the command has ended. A thread of its own calls `prove`.
// Errors:  that of `prove`; those of run_command().
Result<CommandOutcome> run_proved(Command command, const DumpSpec& spec);

}  // namespace kymo::runtime
