#pragma once

#include <chrono>
#include <memory>

#include "runtime/runtime.h"

namespace kymo::runtime {

struct DockerRuntimeOptions {
  std::chrono::milliseconds timeout{0};  // of each dump and restore; 0: none
};

// Makes the runtime for containers of Docker. It uses Docker's Engine API (docker_client.h). Only
// run() starts a program, docker, whose arguments it takes.
//
// Docker dumps only with its experimental features. The order of a dump is:
//
//   1. Docker pauses the container, unless it is paused.
//   2. Docker dumps it and leaves it paused: containerd packs CRIU's images, and Docker unpacks
//      them into the images directory.
//   3. Once the images are there, the container is ended, or unpaused if it is to run on. In the
//      latter case it is unpaused as soon as CRIU is done.
//
// So the container is not lost if a disk is full in the second step. Docker's own way, in which
// CRIU ends the container, would lose it. Docker keeps the ended container, and a restore makes its
// first process again. Docker's runc starts CRIU, which is the criu on the PATH of containerd.
//
// Threads: every member from any thread.
// Errors:  those of Runtime. After a failed restore() the container does not run.
std::unique_ptr<Runtime> make_docker_runtime(DockerRuntimeOptions options);

// Returns the OCI runtime that Docker starts by default: the runc on the PATH of its containerd.
Result<OciRuntime> oci_runtime_of_docker();

}  // namespace kymo::runtime
