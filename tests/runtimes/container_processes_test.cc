#include "runtimes/runc/container_processes.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

class ContainerProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bundle_ = folder_.folder("bundle");
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
  [[nodiscard]] std::vector<pid_t> found(const std::string& container) const {
    std::vector<pid_t> pids;
    for (const ProcessId& one : processes_of_cgroup(container, bundle_, folder_.path())) {
      pids.push_back(one.pid);
    }
    return pids;
  }

  test::TemporaryDirectory folder_;
  std::string bundle_;
};

TEST_F(ContainerProcessesTest, ACgroupHasTheIdOfItsContainer) {
  EXPECT_EQ(found("web"), std::vector<pid_t>{7});
  EXPECT_TRUE(found("we").empty());
}

TEST_F(ContainerProcessesTest, ABundleMayNameItsCgroup) {
  static_cast<void>(
      folder_.file("bundle/config.json", R"({"linux": {"cgroupsPath": "/some/webs"}})"));
  EXPECT_EQ(found("web"), std::vector<pid_t>{9});
  static_cast<void>(folder_.file("bundle/config.json",
                                 R"({"linux": {"cgroupsPath": "machine.slice:kymo:web"}})"));
  EXPECT_EQ(found("any"), std::vector<pid_t>{8});
}

}  // namespace
}  // namespace kymo::runtime
