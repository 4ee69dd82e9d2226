#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/confine/confine.h"
#include "kymo/result.h"

namespace kymo::confine {

// Runs `work` in a child process without rights, and returns its exit code. The child has the
// standard output and error of this process, and of its other descriptors only those in its bounds.
// Its changes in memory are lost. It ends when this process ends.
//
// Threads: any. `work` must not use anything that other threads of this process hold, such as a
//          lock, and must not close any descriptor of this process. It may start threads only if
//          its bounds allow them. The child also ends if the thread that calls this ends.
// Errors:  resource_exhausted: it went beyond its bounds; the system's.
// Cost:    a fork of this process.
Result<int> run_confined(const Bounds& bounds, const std::function<int()>& work);

// Starts such a child, and does not wait for it. The caller reaps it.
// Threads: as for run_confined().
// Errors:  the system's.
Result<pid_t> start_confined(const Bounds& bounds, const std::function<int()>& work);

struct Answer {
  int exit_code = 0;
  std::string text;
};

// Like run_confined(), for `work` that also answers with a text. Do not trust the text more than
// the files that `work` has read.
// Errors: also resource_exhausted if the text is longer than the bounds allow.
Result<Answer> ask_confined(const Bounds& bounds, const std::function<int(std::string&)>& work);

// Like run_confined(), for a function that reads and can fail: its result, or its error.
// Errors: also resource_exhausted: it went beyond its bounds, or its result is longer than they
//         allow.
Result<std::string> read_confined(const Bounds& bounds,
                                  const std::function<Result<std::string>()>& read);

}  // namespace kymo::confine
