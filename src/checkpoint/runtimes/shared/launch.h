#pragma once

#include <sys/types.h>

#include <string>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Starts the command of `spec` in its own session, with stdin from /dev/null, default signal
// handling, and no open descriptors except the standard ones. Returns the pid of the child, which
// the caller must reap.
// `autogroup_nice`: as in Program (base/spawn.h).
// Errors: also those of the start of the program. After an error nothing runs, and no zombie is
//         left.
Result<pid_t> launch(const RunSpec& spec, std::string autogroup_nice = {});

}  // namespace kymo::runtime
