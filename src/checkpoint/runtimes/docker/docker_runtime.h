#pragma once

#include <chrono>
#include <memory>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

struct DockerRuntimeOptions {
  std::chrono::milliseconds timeout{0};  // of each dump and restore; 0: none
};

// Makes the runtime for containers of Docker, as far as Docker's API carries: it has checkpoints only with its
// experimental features, and keeps neither CRIU's log nor its statistics. Docker pauses the container and dumps it. The
// container ends when its images are whole: if CRIU ended it, a full disk would lose it.
//
// Threads: every member from any thread.
// Errors:  those of Runtime. After a failed restore() the container does not run.
std::unique_ptr<Runtime> make_docker_runtime(DockerRuntimeOptions options);

// Returns the OCI runtime that Docker starts by default: the runc on the PATH of its containerd.
Result<OciRuntime> oci_runtime_of_docker();

}  // namespace kymo::runtime
