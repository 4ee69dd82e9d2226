#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "preflight/oci_spec.h"
#include "runtimes/podman/podman_store.h"

namespace kymo::runtime {

// podman restores a container from the config.json of its start. If the container shares a namespace with another one
// (`podman run --network container:X`, a pod), that names it by the pid that X had then: after X was started again there is
// no such process, or a foreign one.
//
// Returns the config.json with the pids that the other containers have now; nothing if it needs no change. `then`: what it
// named at the dump. `asked`: what `podman container inspect` prints for a format.
// Errors: failed_precondition, one line that begins with `tried`: X does not run, or a namespace is not that of a container.
Result<std::optional<std::string>> renew_namespaces(
    const std::string& tried, const PodmanStore& store, const std::string& id,
    const std::vector<preflight::HostName>& then,
    const std::function<std::string(const std::string& format)>& asked);

}  // namespace kymo::runtime
