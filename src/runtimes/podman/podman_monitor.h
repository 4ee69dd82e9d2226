#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/file.h"

namespace kymo::runtime {

// A script that podman starts in place of conmon for a restore (`podman --conmon`). It starts conmon, and has conmon
// start the script again in place of the OCI runtime. This second script starts the runtime and waits for it.
//
// In a restore runc mounts the container's root in its own folder of the container. If runc or conmon is killed, podman
// calls `runc delete --force` at once, which deletes that folder, and through the mount also the files of the root.
// So the second script makes a mount namespace. That mount, and those that CRIU makes, are seen by runc and CRIU alone,
// and end with them. Mounts of the machine are seen in it. conmon stays outside, because it starts podman to unmount the
// container's root.
//
// If runc is killed just before or after the container resumes, CRIU goes on without it, and the container runs. conmon
// would then read runc's stderr to its end, which is also the container's, so it would not return before the container
// ends. podman waits for conmon for four minutes, and then kills the container. So the second script waits for CRIU, and
// if the container runs, it writes the pid file in place of runc and succeeds.
//
// Threads:   any, one for each object.
// Ownership: the script is a file in memory, and gone when the object or the program is.
class PodmanMonitor {
 public:
  // `conmon`: the absolute path of the program. Nothing if that is empty, or if the system starts no such script
  // (sysctl vm.memfd_noexec): podman then uses conmon itself.
  static std::optional<PodmanMonitor> make(const std::string& conmon);
  [[nodiscard]] std::string path() const;

 private:
  explicit PodmanMonitor(FileDescriptor script) : script_(std::move(script)) {}
  FileDescriptor script_;
};

}  // namespace kymo::runtime
