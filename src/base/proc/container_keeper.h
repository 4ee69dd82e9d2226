#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kymo::probe {

// Finds the process that looks after a container, below which its OCI runtime and CRIU run: the shim
// of containerd and Docker, and podman's conmon. Their command lines have the id of the container.
//
// Threads: one at a time.
class ContainerKeeper {
 public:
  // `proc` replaces /proc in tests.
  explicit ContainerKeeper(std::string id, std::string proc = "/proc")
      : id_(std::move(id)), proc_(std::move(proc)) {}

  // The keepers that run now, mostly none or one. Any user may give a process such a name and command
  // line.
  // Cost: lists all processes, and reads those that it has not seen before.
  std::vector<pid_t> look();

 private:
  std::string id_;
  std::string proc_;
  std::set<pid_t> others_;
};

}  // namespace kymo::probe
