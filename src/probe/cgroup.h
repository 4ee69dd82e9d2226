#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kymo::probe {

// Returns the cgroup of a process as a path from the root of its hierarchy: the hierarchy of
// `controller` (v1), or v2 if `controller` is empty. Returns nothing if there is no such hierarchy
// or no such process.
std::optional<std::string> cgroup_path(pid_t pid, std::string_view controller,
                                       const std::string& proc = "/proc");

// Memory and CPU time of the cgroup of a process, v2 or v1, read from files that stay open. A
// function returns nothing if its figure cannot be read: there is no such controller, no
// permission, or the process is in the root cgroup of v2.
//
// Threads: one at a time.
// Cost:    one system call for each figure.
class Cgroup {
 public:
  // `proc` and `sys` replace /proc and /sys/fs/cgroup in tests.
  explicit Cgroup(pid_t pid, const std::string& proc = "/proc",
                  const std::string& sys = "/sys/fs/cgroup");

  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> cpu_ns() const;

 private:
  FileDescriptor memory_;
  FileDescriptor cpu_;
  bool cpu_in_us_ = false;  // v2: "usage_usec N" on the first line of cpu.stat
};

// A limit of a cgroup, and how much of it is used.
struct CgroupLimit {
  std::string folder;  // of the cgroup
  std::uint64_t limit = 0;
  std::uint64_t used = 0;  // of memory: without files that the kernel can read again

  [[nodiscard]] std::uint64_t room() const { return limit > used ? limit - used : 0; }
};

// The limit of `controller` ("memory" in bytes, "pids" in tasks) that leaves a process the least room: that of its cgroup,
// v1 or v2, or of one above it. Returns nothing if there is none, or if it cannot be read.
std::optional<CgroupLimit> least_room(pid_t pid, const std::string& controller,
                                      const std::string& proc = "/proc",
                                      const std::string& sys = "/sys/fs/cgroup");

// How often the kernel has killed a process of the machine because memory ran out, that of a cgroup or of the machine.
std::uint64_t out_of_memory_kills(const std::string& proc = "/proc");

}  // namespace kymo::probe
