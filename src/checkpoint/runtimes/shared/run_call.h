#pragma once

#include <functional>

#include "checkpoint/runtimes/shared/command.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Makes a call to the API of a container runtime that takes as long as CRIU does, and waits for its
// end. `limits` says when and how the call is ended (see Command). Its words, its environment and
// its output path are not used. It returns the outcome of a program: the exit status is 0 or 1, and
// `errors` is the message of the call's error.
//
// `call`:    runs on a new thread.
// `abandon`: makes the call return soon. It is called if the call does not end although
//            limits.time_over() has ended its CRIU.
// Threads:   any; blocks.
// Errors:    deadline_exceeded or cancelled, if the call failed after that.
Result<CommandOutcome> run_call(const Command& limits, const std::function<Result<void>()>& call,
                                const std::function<void()>& abandon);

}  // namespace kymo::runtime
