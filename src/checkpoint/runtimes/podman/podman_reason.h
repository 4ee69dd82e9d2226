#pragma once

#include <cstdint>
#include <string>

namespace kymo::runtime {

// The reason that podman gave: the last line of its errors without "Error: ". If podman's message does not say what
// to do, and it is known, that follows.
// Threads: any.
std::string podman_reason(const std::string& errors);

// The times of a dump or restore, by the output of podman's --print-stats: that of podman itself, and that of its
// OCI runtime for the first container. 0: it says none.
struct PodmanTimes {
  std::uint64_t podman_ns = 0;
  std::uint64_t runtime_ns = 0;
};
// `verb`: "checkpoint" or "restore".
PodmanTimes podman_times(const std::string& output, const std::string& verb);

}  // namespace kymo::runtime
