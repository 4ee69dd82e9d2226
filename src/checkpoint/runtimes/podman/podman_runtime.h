#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// What it makes anew in a restore (preflight/host_names.h).
inline constexpr std::string_view kPodmanRenews = "root network";

struct PodmanRuntimeOptions {
  std::string program = "podman";
  std::vector<std::string> flags;     // flags before podman's verb, as --cgroup-manager=cgroupfs
  std::string criu_folder;            // first on PATH, where podman's OCI runtime looks for criu
  std::chrono::milliseconds timeout;  // of each command; 0: none
};

// Makes the runtime for containers of podman. It uses the command podman.
//
// podman has its own folder for the images of a checkpoint. During a dump or restore this folder is
// a link to the folder that the spec names, so nothing is copied. A checkpoint of podman's own in
// that folder is moved aside for that time.
//
// Threads: every member from any thread.
// Errors:  those of Runtime.
// Cost:    the first use asks podman where it keeps its containers. Later a running container is
//          found in podman's files, without starting a program.
std::unique_ptr<Runtime> make_podman_runtime(PodmanRuntimeOptions options);

// Asks podman which OCI runtime it uses.
// Errors: unavailable if podman does not say.
// Cost:   starts podman twice.
Result<OciRuntime> oci_runtime_of_podman(const std::vector<std::string>& flags);

}  // namespace kymo::runtime
