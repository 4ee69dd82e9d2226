#include "base/proc/container_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

class ContainerKeeperTest : public testing::Test {
 protected:
  void process(int pid, const std::string& name, const std::vector<std::string>& words) const {
    const std::string folder = proc_.path() + "/" + std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/stat")
        << pid << " (" << name << ") S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 "
        << "1 0 5 1000 1 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0\n";
    std::ofstream(folder + "/status") << "Name:\t" << name << "\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n";
    std::ofstream command(folder + "/cmdline");
    for (const std::string& word : words) command << word << '\0';
  }

  test::TemporaryDirectory proc_;
  ContainerKeeper keeper_{"web", proc_.path()};
};

TEST_F(ContainerKeeperTest, FindsTheShimAndConmonOfTheContainerOnly) {
  process(1, "init", {"init", "web"});
  process(5, "containerd-shim", {"containerd-shim-runc-v2", "-namespace", "default", "-id", "web"});
  process(6, "containerd-shim",
          {"containerd-shim-runc-v2", "-namespace", "default", "-id", "other"});
  process(7, "containerd-shim", {"containerd-shim-runc-v2", "-id", "web", "start"});
  process(8, "conmon", {"conmon", "-c", "web", "-r", "/usr/sbin/runc"});
  std::vector<pid_t> found = keeper_.look();
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<pid_t>{5, 8}));
}

TEST_F(ContainerKeeperTest, WhatIsAboutToBecomeOneIsLookedAtAgain) {
  process(5, "podman", {"podman", "container", "restore", "web"});
  process(6, "bash", {"bash"});
  EXPECT_TRUE(keeper_.look().empty());
  process(5, "conmon", {"conmon", "-c", "web"});
  process(6, "conmon", {"conmon", "-c", "web"});  // does not count, because it was a shell before
  EXPECT_EQ(keeper_.look(), (std::vector<pid_t>{5}));
}

}  // namespace
}  // namespace kymo::probe
