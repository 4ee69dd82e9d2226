#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// What a rehearsal of a container of podman needs to know. Threads: any.

// The folder in which podman's runc keeps a container that runs.
std::string record_of_runc(const std::string& id);

// Refuses a container that podman runs by another OCI runtime: only runc is known to restore a container without podman.
// `inspected`: what podman says of a container that has ended; null: it runs. During a dump podman does not answer.
// Errors: unimplemented.
Result<void> check_runs_by_runc(const std::string& tried, const std::string& id,
                                const nlohmann::json& inspected);

// The folders of which podman makes the root when it starts the container, the uppermost first, as the lowerdir of an
// overlay. Empty: its root is no overlay.
std::string layers_of(const nlohmann::json& inspected);

}  // namespace kymo::runtime
