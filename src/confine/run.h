#pragma once

#include <functional>

#include "confine/confine.h"
#include "kymo/result.h"

namespace kymo::confine {

// Runs `work` in a process without rights, which has this one's standard input, output and error,
// and returns its exit code. What it changes in memory is lost.
//
// Threads: any; `work` must start none, and use nothing that other threads of this process hold.
// Errors: resource_exhausted: it went beyond its bounds; the system's. Cost: a fork of this
// process.
Result<int> run_confined(const Bounds& bounds, const std::function<int()>& work);

}  // namespace kymo::confine
