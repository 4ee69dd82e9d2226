#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "base/proc/process.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// The process that keeps the profiles of a kymod (kymod --profiles), 0 if there is none.
inline pid_t keeper_of(pid_t kymod) {
  for (const pid_t pid : probe::all_processes()) {
    const auto seen = probe::read_process(pid);
    if (seen && seen->parent == kymod && seen->name == "kymod-profiles") return pid;
  }
  return 0;
}

// Waits for that process and for its children, one of which writes the newest minute. They may outlive kymod. To be
// made while kymod runs.
class KeeperWatch {
 public:
  explicit KeeperWatch(pid_t kymod) : keeper_(keeper_of(kymod)) {
    EXPECT_NE(keeper_, 0);
    add(keeper_);
  }

  // Returns false if they have not ended after two minutes.
  [[nodiscard]] bool ended() {
    constexpr std::chrono::seconds kPatience{120};
    return eventually([this] { return look(); }, kPatience);
  }

 private:
  void add(pid_t pid) {
    const auto seen = probe::read_process(pid);
    if (seen && !seen->zombie()) known_.emplace(pid, seen->start_ticks);
  }
  // The keeper waits ten seconds for a child before it leaves the child alone, so each child is seen here.
  bool look() {
    if (known_.empty()) return true;
    const Result<std::vector<pid_t>> children = probe::children_of(keeper_);
    for (const pid_t child : children ? *children : std::vector<pid_t>()) add(child);
    return std::all_of(known_.begin(), known_.end(), [](const auto& one) {
      return probe::life_of(one.first, one.second) == probe::Life::ended;
    });
  }

  pid_t keeper_;
  std::map<pid_t, std::uint64_t> known_;  // when they were started
};

}  // namespace kymo::test
