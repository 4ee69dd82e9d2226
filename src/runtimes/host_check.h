#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kymo::runtime {

// One thing that checkpoint/restore on this machine stands on.
struct Finding {
  enum class State : std::uint8_t {
    good,
    absent,  // some things cannot be done without it
    bad,     // nothing can
  };
  std::string what;
  State state = State::good;
  std::string detail;  // a version, a path, or what it means and what to do
};

// Looks at: root; CRIU at `criu` and, unless empty, at `criu_fallback` (each a path, or a name on
// PATH), their versions and own checks, and what they are too old for; kernel features that
// pre-dump and lazy restore need; cgroups; where CRIU can keep what it found out about the kernel;
// each container runtime, and which criu it will find when kymod starts it and, where that is
// another, when somebody else does. Cost: starts each of those programs, about a second.
std::vector<Finding> check_host(const std::string& criu, const std::string& criu_fallback = {});

}  // namespace kymo::runtime
