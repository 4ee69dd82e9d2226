#pragma once

#include <string>

#include "base/confine/confine.h"
#include "kymo/result.h"
#include "profiler/stacks/naming_plan.h"
#include "profiler/stacks/profile.h"

namespace kymo::stacks {

// What the process that reads the names may do: read the files of the plan's modules and debugging information.
confine::Bounds naming_bounds(const NamingPlan& plan);

// pprof() of the profile. The names come from files of other users' programs, so they are read in a process
// without rights. If a program ends that process, less is read of it (naming_plan.h).
//
// Threads: call it from a program with a single thread.
// Errors:  those of confine::read_confined().
Result<std::string> confined_pprof(const Profile& profile);

}  // namespace kymo::stacks
