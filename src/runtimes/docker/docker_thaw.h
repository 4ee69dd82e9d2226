#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"
#include "runtime/runtime.h"
#include "runtimes/docker/docker_client.h"

namespace kymo::runtime {

// Unfreezes a container that Docker has paused, also if its cgroup is not frozen. CRIU unfreezes a
// cgroup of version 1 while it dumps. If CRIU is ended then, Docker still takes the container for
// paused, and its runc refuses to resume what is not frozen. So the cgroup is frozen again first.
//
// If Docker does not take the container for paused, nothing happens.
// Threads: any; blocks for at most fifteen seconds.
// Errors:  those of Docker.
Result<void> unpause_in_docker(const DockerClient& client, const std::string& id,
                               const ProcessId& process);

// What became of a paused container while Docker packed its images:
enum class Pause : std::uint8_t {
  held,   // no process of it has run
  ended,  // it was unpaused by a program that stops it, or Docker does not answer: Docker itself may be stopping
  undone,  // it was unpaused, even if it is paused again
};

// Threads: any; blocks for at most ten seconds.
Pause pause_since(const DockerClient& client, const std::string& id, const ProcessId& process,
                  std::chrono::system_clock::time_point since);

// Unpauses a container as soon as CRIU's log says that the dump is done. Docker goes on with
// packing and unpacking the images for much longer than CRIU takes, but it no longer needs the
// container's processes.
//
// Threads:   one caller. It has its own thread, which reads the end of the log every few
//            milliseconds.
// Ownership: the destructor ends the thread.
class DockerThaw {
 public:
  DockerThaw(DockerClient client, std::string id, ProcessId process, std::string log_path);
  ~DockerThaw();
  DockerThaw(const DockerThaw&) = delete;
  DockerThaw& operator=(const DockerThaw&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace kymo::runtime
