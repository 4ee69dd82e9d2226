#include "checkpoint/runtimes/shared/container_processes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

class ContainerProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    add(7, "1:name=systemd:/user/web\n");
    add(8, "0::/machine/kymo-web.scope\n");
    add(9, "4:devices:/webs\n2:cpu:/\n");
  }
  void add(pid_t pid, const std::string& cgroups) {
    const std::string number = std::to_string(pid);
    static_cast<void>(folder_.folder(number));
    static_cast<void>(folder_.file(number + "/cgroup", cgroups));
    static_cast<void>(folder_.file(
        number + "/stat", number + " (sh) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123 0 0"));
    static_cast<void>(folder_.file(number + "/status", "Name:\tsh\nUid:\t0\t0\t0\t0\n"));
    static_cast<void>(folder_.file(number + "/cmdline", "sh"));
  }
  [[nodiscard]] std::vector<pid_t> found(const std::vector<std::string>& names,
                                         const std::set<std::string>& others = {}) const {
    std::vector<pid_t> pids;
    for (const ProcessId& one : processes_of_cgroups(names, others, folder_.path())) {
      pids.push_back(one.pid);
    }
    return pids;
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ContainerProcessesTest, ACgroupHasTheNameOfItsContainer) {
  EXPECT_EQ(found({"web"}), std::vector<pid_t>{7});
  EXPECT_EQ(found({"user/web"}), std::vector<pid_t>{7});
  EXPECT_EQ(found({"webs", "other"}), std::vector<pid_t>{9});
  EXPECT_TRUE(found({"eb"}).empty());
  EXPECT_TRUE(found({}).empty());
}

// With cgroups of version 1, each process has several.
TEST_F(ContainerProcessesTest, OthersOfTheNameAreKnownByTheWholePath) {
  const std::set<std::string> others = cgroups_in_use({"web"}, folder_.path());
  EXPECT_EQ(others, std::set<std::string>{"1:name=systemd:/user/web\n"});
  add(10, "1:name=systemd:/web\n");
  add(11, "1:name=systemd:/user/web\n");
  EXPECT_EQ(found({"web"}, others), std::vector<pid_t>{10});
  EXPECT_EQ(found({"web"}).size(), 3U);
}

TEST_F(ContainerProcessesTest, ASpecMayNameTheCgroup) {
  EXPECT_EQ(cgroup_name("", "web"), "web");
  EXPECT_EQ(cgroup_name("{}", "web"), "web");
  EXPECT_EQ(cgroup_name(R"({"linux": {"cgroupsPath": "/"}})", "web"), "web");
  EXPECT_EQ(cgroup_name(R"({"linux": {"cgroupsPath": "/some//webs"}})", "web"), "some/webs");
  EXPECT_EQ(cgroup_name(R"({"linux": {"cgroupsPath": "machine.slice:kymo:web"}})", "any"),
            "kymo-web.scope");
}

}  // namespace
}  // namespace kymo::runtime
