#pragma once

#include <string>

#include "kymo/result.h"
#include "runtime/command.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// Restores a container of a bundle on a stage (criu/rehearsal.h), up to the moment before anything of it runs: by a runc
// with a state of its own, under another id, in another cgroup, in the network of the stage, and without the hooks of
// the bundle, which change things outside. The bundle is not changed, and nothing is left.
//
// `runc`: the program and the flags of the restore, with its environment and timeout.
// Errors: one line that begins with `tried`.
// Threads: any; blocks for about as long as a restore takes.
Result<void> rehearse_by_runc(const std::string& tried, const RehearsalSpec& spec, Command runc);

}  // namespace kymo::runtime
