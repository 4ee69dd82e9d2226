#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <thread>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "kymo/result.h"

namespace kymo::runtime {

// A container runtime that is a server, such as containerd, starts CRIU itself. These functions
// find out which criu that is. Threads: any.

// Returns the process that listens on the unix socket. If systemd made the socket, that is systemd.
// Errors: unavailable if no program listens. The message is only that of the system.
Result<pid_t> server_of(const std::string& socket);

// Returns a variable in the environment that a process was started with. Empty if it has none.
// Errors: those of reading /proc.
Result<std::string> variable_of(pid_t process, const std::string& name);

// Returns the PATH in the environment of a process.
// Errors: failed_precondition if it has none; those of reading /proc.
Result<std::string> path_of(pid_t server);

// Returns the criu on `path`, which is the PATH of `server`, such as "containerd".
// Errors: failed_precondition if there is none; those of starting it.
// Cost:   starts criu to learn its version.
Result<CriuProgram> criu_of_server(const std::string& server, const std::string& path);

// Whether a process runs as root, outside of containers, and the name of its executable begins with
// `program`. It is a check for safety: any user can give a process the name dockerd, and kymod
// runs, as root, the criu that it finds through the environment of dockerd.
// Threads: any.
bool is_of_root(const probe::Process& process, std::string_view program);

// The shim of containerd, which Docker has, too, is the parent of a container's first process, and runs in the bundle.
// Returns a folder below that of this shim, without links. Empty if the process is no shim.
std::string folder_of_shim(pid_t shim, const char* below);
// Returns the folder with the config.json of the container that runs. Empty if it has no shim. `process`: its first one.
std::string bundle_of_shim(pid_t process);

// While it exists, a link leads to the work folder of the shim that restores a container, once there is one. CRIU's log and
// statistics of the restore are there.
//
// Threads:   one caller. It has its own thread, which looks every few milliseconds.
// Ownership: the destructor ends the thread, removes the link, and detaches the mounts that a CRIU left there which was
//            killed. Call it after the server has answered.
class ShimLink {
 public:
  // `id`: of the container, which does not run.
  ShimLink(const std::string& id, const std::string& link);
  ~ShimLink();
  ShimLink(const ShimLink&) = delete;
  ShimLink& operator=(const ShimLink&) = delete;

 private:
  const std::string link_;
  std::jthread thread_;
};

}  // namespace kymo::runtime
