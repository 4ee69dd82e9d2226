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
    return priority_here(folder_.path() + "/proc", folder_.path() + "/cgroup");
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

}  // namespace
}  // namespace kymo::daemon
