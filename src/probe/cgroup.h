#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kymo::probe {

// The cgroup that a process is in, as a path from its hierarchy's root: that of `controller` (v1),
// or of v2 for an empty one. None: no such hierarchy, or no such process.
std::optional<std::string> cgroup_path(pid_t pid, std::string_view controller,
                                       const std::string& proc = "/proc");

// Memory and CPU time of the cgroup that a process is in, v2 or v1, read from files that stay open.
//
// What cannot be read (no such controller, no permission, the root cgroup of v2) is not there.
// Threads: one at a time. Cost: a system call a figure.
class Cgroup {
 public:
  // `proc` and `sys` stand in for /proc and /sys/fs/cgroup in tests.
  explicit Cgroup(pid_t pid, const std::string& proc = "/proc",
                  const std::string& sys = "/sys/fs/cgroup");

  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> cpu_ns() const;

 private:
  FileDescriptor memory_;
  FileDescriptor cpu_;
  bool cpu_in_us_ = false;  // v2: "usage_usec N" on the first line of cpu.stat
};

}  // namespace kymo::probe
