#pragma once

#include <chrono>
#include <string>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Restores the container of a bundle on a stage (criu/rehearsal.h), up to the moment before anything of it runs: by a runc
// with a state of its own, under another id, in another cgroup, in the network of the stage, and without the hooks of
// the bundle, which change things outside. The bundle is not changed, and nothing is left. So containers of every
// runtime that runs them by runc are rehearsed.
//
// `spec.bundle`: has the config.json with which the container runs.
// `root_layers`: if its root is not mounted, the folders of an overlay that are its root, the uppermost first.
// `criu_folder`: first on PATH, unless the spec has a criu. `timeout`: unless the spec has a limit.
// Errors: those of the restore, one line each; failed_precondition: there is no such bundle.
// Threads: any; blocks for about as long as a restore takes.
Result<void> rehearse_by_runc(const RehearsalSpec& spec, const std::string& criu_folder,
                              std::chrono::milliseconds timeout,
                              const std::string& root_layers = {},
                              const std::string& program = "runc");

// The error for a container that has ended, and whose runtime then takes its root and its config.json away.
Error not_rehearsable(const std::string& tried, const std::string& runtime);

}  // namespace kymo::runtime
