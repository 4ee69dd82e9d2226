#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "programs.h"

namespace kymo::test {

// A cgroup for this test in each hierarchy of version 1. CRIU saves all cgroups below those of a
// process, and cgroups of other programs appear and disappear.
class OwnCgroups {
 public:
  OwnCgroups() {
    for (const std::filesystem::directory_entry& hierarchy :
         std::filesystem::directory_iterator("/sys/fs/cgroup")) {
      if (hierarchy.is_symlink() || !std::filesystem::exists(hierarchy.path() / "tasks")) continue;
      paths_.push_back(hierarchy.path() / name_);
      std::filesystem::create_directory(paths_.back());
      for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
        if (!std::filesystem::exists(hierarchy.path() / file)) continue;
        std::ofstream(paths_.back() / file) << read_file(hierarchy.path() / file);
      }
    }
  }
  ~OwnCgroups() { EXPECT_TRUE(removed()); }
  OwnCgroups(const OwnCgroups&) = delete;
  OwnCgroups& operator=(const OwnCgroups&) = delete;

  void take(pid_t pid) const {
    for (const std::filesystem::path& path : paths_) std::ofstream(path / "cgroup.procs") << pid;
  }
  [[nodiscard]] bool removed() const {
    return eventually([&] {
      return std::all_of(paths_.begin(), paths_.end(), [](const std::filesystem::path& path) {
        return rmdir(path.c_str()) == 0 || errno == ENOENT;
      });
    });
  }
  [[nodiscard]] std::size_t holding(pid_t pid) const {
    std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/cgroup"));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) count += line.ends_with("/" + name_);
    return count;
  }
  [[nodiscard]] std::size_t count() const { return paths_.size(); }

 private:
  const std::string name_ = "kymo-test-" + std::to_string(getpid());
  std::vector<std::filesystem::path> paths_;
};

}  // namespace kymo::test
