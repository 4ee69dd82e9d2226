#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// Where podman keeps its containers, and what its files say of them.
struct PodmanStore {
  std::string containers;      // GRAPHROOT/DRIVER-containers
  std::string run_containers;  // RUNROOT/DRIVER-containers

  // From what `podman info --format json` prints. Errors: data_loss.
  static Result<PodmanStore> from_info(const std::string& text);

  // The id of the one container of this name or id, or of the only id that begins so; none where
  // there is no such one, or several.
  [[nodiscard]] std::optional<std::string> id_of(const std::string& name) const;
  // Its first process; 0 where its files name none that runs and is in a cgroup of the container.
  [[nodiscard]] pid_t pid_of(const std::string& id) const;
  // Where podman puts its checkpoint, CRIU's log and the statistics.
  [[nodiscard]] std::string folder_of(const std::string& id) const {
    return containers + "/" + id + "/userdata";
  }
};

}  // namespace kymo::runtime
