#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// A cgroup's freezer, version 1 or 2: stops every process in it without any of them noticing.
//
// Threads: any, one at a time for one cgroup. Ownership: none; the cgroup stays as it is left.
// Errors:  no freezer where the process is, no permission; deadline_exceeded.
class Freezer {
 public:
  // The one whose cgroup the process is in. `proc` and `sys` stand in for /proc and /sys/fs/cgroup
  // in tests. A machine with both versions mounted freezes by version 1.
  static Result<Freezer> of(pid_t pid, const std::string& proc = "/proc",
                            const std::string& sys = "/sys/fs/cgroup");
  Freezer(std::string folder, int version) : folder_(std::move(folder)), version_(version) {}

  // Whether it was told to freeze, itself and not by a cgroup above; false where it is gone.
  [[nodiscard]] bool frozen() const;
  // Returns once every process in it has stopped, or can run.
  [[nodiscard]] Result<void> set(
      bool frozen, std::chrono::milliseconds within = std::chrono::milliseconds(5000)) const;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] int version() const { return version_; }

 private:
  [[nodiscard]] bool settled(bool frozen) const;

  std::string folder_;
  int version_;
};

// Whether the process stands still: its cgroup's freezer holds it, or a signal stopped it.
bool is_frozen(pid_t pid);

}  // namespace kymo::runtime
