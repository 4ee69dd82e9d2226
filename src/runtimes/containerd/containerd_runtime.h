#pragma once

#include <chrono>
#include <memory>

#include "runtime/runtime.h"

namespace kymo::runtime {

struct ContainerdRuntimeOptions {
  std::chrono::milliseconds timeout{0};  // of each dump and restore; 0: none
};

// Containers of containerd, by its gRPC API (containerd_client.h). Only run() starts a program,
// containerd's own client ctr: a container's specification is made of its image by that client's
// library and not by containerd.
//
// The container stays containerd's while it is dumped: its first process ends, and a restore makes
// it anew. CRIU is started by containerd's runc: it is the criu on containerd's PATH.
//
// Threads: every member from any thread. Errors: as of Runtime; of restore(): no task is left.
std::unique_ptr<Runtime> make_containerd_runtime(ContainerdRuntimeOptions options);

// The OCI runtime that containerd's shim starts.
Result<OciRuntime> oci_runtime_of_containerd();

}  // namespace kymo::runtime
