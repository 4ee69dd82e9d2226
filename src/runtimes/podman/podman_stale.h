#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/command.h"

namespace kymo::runtime {

// Makes podman note that a container has ended which it takes for a running one, because its storage failed when the
// container ended. No restore is possible before that, and `podman container cleanup` alone refuses. Takes five seconds,
// for which podman waits for its monitor. Call it only if no process of the container lives.
// `command`: makes a command of podman from the words after its flags.
void end_stale_container(const std::string& id,
                         const std::function<Command(std::vector<std::string>)>& command);

// Removes what runc keeps of a container that has ended. podman does so after a restore that failed, but gives up after ten
// seconds, and CRIU may need longer to end. runc would then refuse each other restore.
void remove_stopped(const std::string& id);

}  // namespace kymo::runtime
