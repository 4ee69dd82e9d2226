#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// Finds containers in podman's own files.
struct PodmanStore {
  std::string containers;      // GRAPHROOT/DRIVER-containers
  std::string run_containers;  // RUNROOT/DRIVER-containers

  // Reads the output of `podman info --format json`.
  // Errors: data_loss.
  static Result<PodmanStore> from_info(const std::string& text);

  // Returns the id of the container with this name or id, or of the only container whose id begins
  // with `name`. Returns nothing if there is no such container or several.
  [[nodiscard]] std::optional<std::string> id_of(const std::string& name) const;
  // Returns the first name of the container with this id. Empty if there is no such container.
  [[nodiscard]] std::string name_of(const std::string& id) const;
  // Returns the pid of the container's first process. 0 if podman's files name no process that runs
  // and is in a cgroup of the container.
  [[nodiscard]] pid_t pid_of(const std::string& id) const;
  // Whether podman removes the container as soon as it ends (podman run --rm).
  [[nodiscard]] bool removes_when_ended(const std::string& id) const;
  // Returns the folder in which podman puts its checkpoint, CRIU's log and CRIU's statistics.
  [[nodiscard]] std::string folder_of(const std::string& id) const {
    return containers + "/" + id + "/userdata";
  }
};

}  // namespace kymo::runtime
