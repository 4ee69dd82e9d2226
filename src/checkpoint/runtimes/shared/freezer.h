#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// The freezer of a cgroup, version 1 or 2. It stops every process in the cgroup, and the processes
// do not notice it.
//
// Threads:   any, one at a time for one cgroup.
// Ownership: none. The destructor leaves the cgroup frozen or unfrozen as it is.
// Errors:    the process is in no cgroup with a freezer, no permission, deadline_exceeded.
class Freezer {
 public:
  // Returns the freezer of the cgroup of the process. If both versions are mounted, it is that of
  // version 1. Tests pass other folders as `proc` and `sys`.
  static Result<Freezer> of(pid_t pid, const std::string& proc = "/proc",
                            const std::string& sys = "/sys/fs/cgroup");
  Freezer(std::string folder, int version) : folder_(std::move(folder)), version_(version) {}

  // Whether this cgroup itself was frozen, and not only a cgroup above it. False if it is gone.
  [[nodiscard]] bool frozen() const;
  // Freezes or unfreezes the cgroup. Returns when every process in it has stopped or can run.
  [[nodiscard]] Result<void> set(
      bool frozen, std::chrono::milliseconds within = std::chrono::milliseconds(5000)) const;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] int version() const { return version_; }

 private:
  [[nodiscard]] bool settled(bool frozen) const;

  std::string folder_;
  int version_;
};

// The folder of the frozen cgroup that stops the process: its own one, or one above it. Empty: none does.
std::string frozen_cgroup(pid_t pid, const std::string& proc = "/proc",
                          const std::string& sys = "/sys/fs/cgroup");

// Whether the freezer of a cgroup, or a signal, has stopped the process.
bool is_frozen(pid_t pid);

}  // namespace kymo::runtime
