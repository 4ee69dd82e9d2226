#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// What it makes anew in a restore (preflight/host_names.h).
inline constexpr std::string_view kContainerdRenews = "root";

struct ContainerdRuntimeOptions {
  std::chrono::milliseconds timeout{0};  // of each dump and restore; 0: none
};

// Makes the runtime for containers of containerd. It uses containerd's gRPC API
// (containerd_client.h). Only run() starts a program, containerd's client ctr, because the library
// of that client, and not containerd, makes the specification of a container from its image.
//
// A dump ends the container's first process, unless it is to run on, but containerd keeps the
// container. A restore makes the first process again. containerd's runc starts CRIU, which is the
// criu on containerd's PATH.
//
// Threads: every member from any thread.
// Errors:  those of Runtime. After a failed restore() no task is left.
std::unique_ptr<Runtime> make_containerd_runtime(ContainerdRuntimeOptions options);

// Returns the OCI runtime that containerd's shim starts: the runc on containerd's PATH.
Result<OciRuntime> oci_runtime_of_containerd();

}  // namespace kymo::runtime
