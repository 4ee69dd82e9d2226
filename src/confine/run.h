#pragma once

#include <functional>

#include "confine/confine.h"
#include "kymo/result.h"

namespace kymo::confine {

// Runs `work` in a child process without rights, and returns its exit code. The child has the
// standard input, output and error of this process. Its changes in memory are lost.
//
// Threads: any; `work` must start no thread, and must not use anything that other threads of this
//          process hold, such as a lock.
// Errors:  resource_exhausted: it went beyond its bounds; the system's.
// Cost:    a fork of this process.
Result<int> run_confined(const Bounds& bounds, const std::function<int()>& work);

}  // namespace kymo::confine
