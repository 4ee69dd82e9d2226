#include "daemon/request/cpu_priority.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using diagnosis::Priority;

class CpuPriorityTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void in_cgroup(const std::string& lines) const {
    write("/proc/" + std::to_string(::getpid()) + "/cgroup", lines);
  }
  [[nodiscard]] Priority found() const {
    return priority_of(::getpid(), folder_.path() + "/proc", folder_.path() + "/cgroup");
  }

  test::TemporaryDirectory folder_;
};

TEST_F(CpuPriorityTest, IsThatOfTheSessionWhileAutogroupsAreOn) {
  EXPECT_EQ(found(), Priority::nice) << "a kernel without autogroups";
  write("/proc/sys/kernel/sched_autogroup_enabled", "0\n");
  EXPECT_EQ(found(), Priority::nice);
  write("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
  EXPECT_EQ(found(), Priority::autogroup);
  in_cgroup("2:cpuacct:/a\n1:cpu:/\n0::/\n");
  EXPECT_EQ(found(), Priority::autogroup) << "the root has no cpu.weight";
}

TEST_F(CpuPriorityTest, IsThatOfTheCgroupIfItsCpuControllerIsOn) {
  write("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
  in_cgroup("0::/system.slice/kymod.service\n");
  EXPECT_EQ(found(), Priority::autogroup) << "no controller is on there";
  write("/cgroup/system.slice/kymod.service/cpu.weight", "100\n");
  EXPECT_EQ(found(), Priority::cgroup);
  in_cgroup("1:cpu,cpuacct:/kymod\n");
  EXPECT_EQ(found(), Priority::cgroup) << "version 1";
}

TEST_F(CpuPriorityTest, TheAutogroupOfAProcessIsReadWhereItCounts) {
  const std::string proc = folder_.path() + "/proc";
  const std::string sys = folder_.path() + "/cgroup";
  const auto found = [&] { return autogroup_of(77, proc, sys); };
  write("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
  EXPECT_EQ(found().pid, 0) << "it has ended";
  write("/proc/77/autogroup", "/autogroup-12 nice -20\n");
  EXPECT_EQ(found().pid, 77);
  EXPECT_EQ(found().name, "/autogroup-12");
  EXPECT_EQ(found().nice, -20);
  write("/proc/sys/kernel/sched_autogroup_enabled", "0\n");
  EXPECT_EQ(found().pid, 0) << "it does not count";
}

}  // namespace
}  // namespace kymo::daemon
