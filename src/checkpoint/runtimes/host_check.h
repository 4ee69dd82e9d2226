#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/runtimes/table.h"

namespace kymo::runtime {

// The result of the check of one thing that checkpoint/restore needs on this machine.
struct HostFinding {
  enum class State : std::uint8_t {
    good,
    absent,  // some functions do not work without it
    bad,     // nothing works without it
  };
  std::string what;
  State state = State::good;
  std::string detail;  // a version, a path, or what it means and what to do
};

// Checks what dumps and restores need on this machine:
//
// - whether this program runs as root,
// - CRIU at `criu` and, unless empty, at `criu_fallback` (each a path, or a name on PATH): the
//   version, CRIU's own check, and what the version is too old for,
// - the kernel features that pre-dump and lazy restore need,
// - whether /run is a tmpfs, in which CRIU can keep what it found out about the kernel,
// - cgroups,
// - each container runtime: which criu it finds if kymod starts it.
//
// Of the settings, it uses podman's flags. PATH, CONTAINERD_ADDRESS and DOCKER_HOST are those of
// this program. kymod may have others, so a kymod that runs is asked instead.
//
// Threads: any; each call starts its own programs.
// Cost: starts each of those programs; about a second.
std::vector<HostFinding> check_host(const std::string& criu, const std::string& criu_fallback = {},
                                    const RuntimeSettings& settings = {});

// Checks which criu runc and podman find if somebody starts them with the PATH of this program.
// Nothing if it is `criu`, which kymod gives them.
// Cost: starts that criu.
std::optional<HostFinding> check_criu_by_hand(const std::string& criu);

}  // namespace kymo::runtime
