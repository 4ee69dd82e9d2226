#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// The limits of CPU time of a process: those of its cgroup, v1 or v2, and of those above it, as they are now. Their
// statistics stay open.
//
// Threads: one at a time.
// Cost:    one system call for each limit.
class CpuQuotas {
 public:
  CpuQuotas() = default;  // of a process without limits
  explicit CpuQuotas(pid_t pid, const std::string& proc = "/proc",
                     const std::string& sys = "/sys/fs/cgroup");

  // The tightest: the folder of the cgroup, empty if there is no limit, and how many CPUs it may use.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] double cpus() const { return cpus_; }
  // How long, in nanoseconds, programs of the cgroup that is held up most could run and were kept from it, since it was
  // made. With v1 and with v2, the times of all CPUs add up.
  [[nodiscard]] std::uint64_t waited_ns() const { return longest(true); }
  // The same of the cgroups above its own.
  [[nodiscard]] std::uint64_t waited_above_ns() const { return longest(false); }

 private:
  struct Statistics {
    FileDescriptor file;
    std::string_view key;
    std::uint64_t unit_ns = 1;
    bool own = false;  // of the cgroup of the process itself
  };
  [[nodiscard]] std::uint64_t longest(bool with_own) const;

  std::string folder_;
  double cpus_ = 0;
  std::vector<Statistics> limited_;
};

// How often the kernel has killed a process of the machine because memory ran out, that of a cgroup or of the machine.
std::uint64_t out_of_memory_kills(const std::string& proc = "/proc");

}  // namespace kymo::probe
