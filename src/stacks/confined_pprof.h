#pragma once

#include <string>

#include "confine/confine.h"
#include "kymo/result.h"
#include "stacks/profile.h"

namespace kymo::stacks {

// What the process that reads the names may do: read the files of the profile's modules and debugging information.
confine::Bounds naming_bounds(const Profile& profile);

// pprof() of the profile. The names come from files of other users' programs, so they are read in a process
// without rights. If the debugging information of a program ends that process, it is left out: inlined
// functions then have no names.
//
// Threads: call it from a program with a single thread.
// Errors:  those of confine::read_confined().
Result<std::string> confined_pprof(const Profile& profile);

}  // namespace kymo::stacks
