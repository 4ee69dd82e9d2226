#pragma once

#include <sys/types.h>

#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Starts a command as RunSpec says, in a session of its own with stdin from /dev/null, default
// signals and nothing else open. Returns its pid: a child that the caller must reap. Errors, the
// program's start included: nothing runs, and no zombie is left.
Result<pid_t> launch(const RunSpec& spec);

}  // namespace kymo::runtime
