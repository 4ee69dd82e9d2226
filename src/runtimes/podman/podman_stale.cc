#include "runtimes/podman/podman_stale.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/mounts.h"
#include "kymo/scope.h"
#include "runtimes/podman/podman_rehearsal.h"

namespace kymo::runtime {

void end_stale_container(const std::string& id,
                         const std::function<Command(std::vector<std::string>)>& command) {
  const Scope scope("let podman note its end", {.category = "runtime"});
  // It fails, because the monitor of the container is gone, too, but notes the end before that.
  static_cast<void>(run_command(command({"stop", "--time", "0", id})).ok());
  static_cast<void>(run_command(command({"container", "cleanup", id})).ok());
}

void remove_stopped(const std::string& id) {
  const std::string folder = record_of_runc(id);
  std::error_code error;
  if (!std::filesystem::exists(folder + "/state.json", error)) return;
  if (!detach_mounts(folder + "/")) return;  // runc would delete the files below them
  Command remove;
  remove.words = {"runc", "delete", id};  // refuses a container that is not stopped
  remove.timeout = std::chrono::seconds(5);
  static_cast<void>(run_command(remove).ok());
}

}  // namespace kymo::runtime
