#pragma once

#include <CLI/CLI.hpp>

#include "api/kymo/v1/kymo.pb.h"
#include "verbs.h"

namespace kymo::cli {

// Adds `kymo check process PID|JOB`, `kymo check runc NAME` and so on.
void add_check_targets(CLI::App& check, Context& context);

// Looks at a process or container, without stopping it, and prints what makes the dump that is planned
// fail. kymod is asked for a job and for a container; a pid needs no kymod. Sets the exit
// code: 0 nothing makes it fail, 1 something does, 3 nothing was found but not all could be seen.
void check_target(Context& context, const v1::CheckRequest& planned);

}  // namespace kymo::cli
