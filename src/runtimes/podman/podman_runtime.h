#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace kymo::runtime {

struct PodmanRuntimeOptions {
  std::string program = "podman";
  std::vector<std::string> flags;     // put before podman's verb: --cgroup-manager=cgroupfs
  std::string criu_folder;            // put first on PATH: podman's runtime looks for criu by name
  std::chrono::milliseconds timeout;  // of each command; 0: none
};

// Containers of podman, by podman's own command.
//
// CRIU is led past podman's own folder by a link: its images are written where the spec says, and
// nothing is copied. What podman keeps there of its own is set aside for as long.
//
// Threads: every member from any thread. Errors: as of Runtime.
// Cost:    the first use asks podman where it keeps its containers; later a running one is found in
//          podman's files, without starting anything.
std::unique_ptr<Runtime> make_podman_runtime(PodmanRuntimeOptions options);

// The OCI runtime that podman uses, as podman says. Errors: it says nothing. Cost: starts podman.
Result<OciRuntime> oci_runtime_of_podman();

}  // namespace kymo::runtime
