#pragma once

#include <string>

#include "verbs.h"

namespace kymo::cli {

// Looks at a checkpoint and at this machine, and prints what makes the restore fail. `criu` and
// `fallback` are the programs with which it would be restored; `fallback` may be empty. Sets the
// exit code: 0 nothing makes it fail, 1 something does, 3 nothing was found but not all could be
// seen.
void check_checkpoint(Context& context, const std::string& checkpoint, const std::string& criu,
                      const std::string& fallback);

}  // namespace kymo::cli
