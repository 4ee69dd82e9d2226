#include "profiler/kept/cgroup_rule.h"

#include <gtest/gtest.h>

namespace kymo::profiles {
namespace {

constexpr const char* kHybrid =
    "7:cpu,cpuacct:/user.slice\n"
    "5:pids:/docker/0123\n"
    "1:name=systemd:/init.scope\n"
    "0::/docker/0123/nested\n";

TEST(CgroupRuleTest, AFolderIsOfItsHierarchy) {
  const auto matches = [](const char* text) {
    const auto rule = cgroup_rule(text, false);
    return rule && is_in(*rule, kHybrid);
  };
  EXPECT_TRUE(matches("/sys/fs/cgroup/pids/docker"));
  EXPECT_TRUE(matches("/sys/fs/cgroup/pids/docker/0123/"));
  EXPECT_FALSE(matches("/sys/fs/cgroup/pids/docker/012")) << "only a part of the name matches";
  EXPECT_FALSE(matches("/sys/fs/cgroup/pids/docker/0123/nested"));
  EXPECT_TRUE(matches("/sys/fs/cgroup/unified/docker/0123/nested"));
  EXPECT_TRUE(matches("/sys/fs/cgroup/cpuacct/user.slice"));
  EXPECT_TRUE(matches("/sys/fs/cgroup/cpu,cpuacct/user.slice"));
  EXPECT_TRUE(matches("/sys/fs/cgroup/systemd/init.scope"));
  EXPECT_FALSE(matches("/sys/fs/cgroup/memory/docker"));
}

TEST(CgroupRuleTest, APathIsOfAnyHierarchy) {
  for (const char* text : {"/docker", "/user.slice", "/docker/0123/nested"}) {
    EXPECT_TRUE(is_in(cgroup_rule(text, false).value(), kHybrid)) << text;
  }
  EXPECT_FALSE(is_in(cgroup_rule("/nested", false).value(), kHybrid));
}

TEST(CgroupRuleTest, WithVersion2AloneThereIsOneHierarchy) {
  const auto rule = cgroup_rule("/sys/fs/cgroup/system.slice/nginx.service", true).value();
  EXPECT_EQ(rule.path, "/system.slice/nginx.service");
  EXPECT_TRUE(is_in(rule, "0::/system.slice/nginx.service/worker\n"));
  EXPECT_FALSE(is_in(rule, "0::/system.slice/nginx.service2\n"));
  EXPECT_FALSE(is_in(rule, ""));
  EXPECT_FALSE(is_in(rule, "no line of it"));
}

TEST(CgroupRuleTest, TheRootAndOtherTextsAreRefused) {
  for (const char* text : {"", "/", "web", "/sys/fs/cgroup", "/sys/fs/cgroup/"}) {
    EXPECT_FALSE(cgroup_rule(text, true)) << text;
    EXPECT_FALSE(cgroup_rule(text, false)) << text;
  }
  EXPECT_FALSE(cgroup_rule("/sys/fs/cgroup/pids", false))
      << "the root of a hierarchy cannot be chosen";
}

TEST(CgroupRuleTest, TheCgroupOfAProcessIsThatOfVersion2UnlessItIsTheRoot) {
  EXPECT_EQ(cgroup_path_in(kHybrid), "/docker/0123/nested");
  EXPECT_EQ(cgroup_path_in("5:pids:/docker/0123\n0::/\n"), "/docker/0123");
  EXPECT_EQ(cgroup_path_in("5:pids:/\n0::/\n"), "");
}

}  // namespace
}  // namespace kymo::profiles
