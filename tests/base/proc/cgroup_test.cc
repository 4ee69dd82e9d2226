#include "base/proc/cgroup.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

class CgroupTest : public ::testing::Test {
 protected:
  // Writes these lines to /proc/42/cgroup, and opens that cgroup, whose files are below sys.
  Cgroup open(const std::string& lines) {
    root_.folder("42");
    root_.file("42/cgroup", lines);
    return Cgroup(42, root_.path(), root_.path() + "/sys");
  }
  void file(const std::string& folder, const std::string& name, const std::string& text) {
    root_.folder(folder);
    root_.file(folder + "/" + name, text);
  }
  test::TemporaryDirectory root_;
};

TEST_F(CgroupTest, ReadsVersionTwo) {
  file("sys/a.slice/b", "memory.current", "12345\n");
  root_.file("sys/a.slice/b/cpu.stat", "usage_usec 77\nuser_usec 70\nsystem_usec 7\n");
  const Cgroup cgroup = open("0::/a.slice/b\n");
  EXPECT_EQ(cgroup.memory_bytes(), 12345U);
  EXPECT_EQ(cgroup.cpu_ns(), 77'000U);
}

TEST_F(CgroupTest, ReadsVersionOne) {
  file("sys/memory/x", "memory.usage_in_bytes", "99\n");
  file("sys/cpuacct/y", "cpuacct.usage", "123456789\n");
  const Cgroup cgroup = open("5:memory:/x\n4:cpu,cpuacct:/y\n0::/\n");
  EXPECT_EQ(cgroup.memory_bytes(), 99U);
  EXPECT_EQ(cgroup.cpu_ns(), 123'456'789U);
}

TEST_F(CgroupTest, AContainersOwnGroupMayBeTheRootOfItsMount) {
  file("sys/memory", "memory.usage_in_bytes", "7\n");
  EXPECT_EQ(open("5:memory:/not/here\n").memory_bytes(), 7U);
}

TEST_F(CgroupTest, WhatCannotBeReadIsNotThere) {
  const Cgroup cgroup = open("0::/\nnonsense\n");
  EXPECT_FALSE(cgroup.memory_bytes());
  EXPECT_FALSE(cgroup.cpu_ns());
  file("sys/damaged", "memory.current", "max\n");
  EXPECT_FALSE(open("0::/damaged\n").memory_bytes());
}

class LeastRoomTest : public ::testing::Test {
 protected:
  LeastRoomTest() { root_.folder("42"); }
  void group(const std::string& folder, const std::map<std::string, std::string>& files) const {
    root_.folder("sys/" + folder);
    for (const auto& [name, text] : files) root_.file("sys/" + folder + "/" + name, text);
  }
  [[nodiscard]] std::optional<CgroupLimit> room(const std::string& controller) const {
    return least_room(42, controller, root_.path(), root_.path() + "/sys");
  }
  test::TemporaryDirectory root_;
};

TEST_F(LeastRoomTest, IsThatOfTheTightestCgroupOfVersionTwo) {
  root_.file("42/cgroup", "0::/pod/web\n");
  EXPECT_FALSE(room("memory"));
  group("pod/web", {{"memory.max", "max\n"}, {"memory.current", "700\n"}});
  EXPECT_FALSE(room("memory"));
  group("pod", {{"memory.max", "1000\n"},
                {"memory.current", "900\n"},
                {"memory.stat", "anon 600\ninactive_file 200\nactive_file 50\n"},
                {"pids.max", "10\n"},
                {"pids.current", "12\n"}});
  ASSERT_TRUE(room("memory"));
  EXPECT_EQ(room("memory")->folder, root_.path() + "/sys/pod");
  EXPECT_EQ(room("memory")->used, 650U) << "the kernel can read files again";
  EXPECT_EQ(room("memory")->room(), 350U);
  EXPECT_EQ(room("pids")->room(), 0U);
  group("pod/web", {{"memory.max", "800\n"}, {"memory.current", "700\n"}});
  EXPECT_EQ(room("memory")->room(), 100U);
}

TEST_F(LeastRoomTest, IsThatOfTheTightestCgroupOfVersionOne) {
  root_.file("42/cgroup", "8:pids:/web\n4:memory:/web\n0::/\n");
  group("memory",
        {{"memory.limit_in_bytes", "9223372036854771712\n"}, {"memory.usage_in_bytes", "5000\n"}});
  EXPECT_GT(room("memory")->room(), 1'000'000'000U);
  group("memory/web",
        {{"memory.limit_in_bytes", "4096\n"},
         {"memory.usage_in_bytes", "4000\n"},
         {"memory.stat",
          "cache 9\ninactive_file 7\ntotal_inactive_file 70\ntotal_active_file 30\n"}});
  EXPECT_EQ(room("memory")->used, 3900U);
  group("pids/web", {{"pids.max", "max\n"}, {"pids.current", "3\n"}});
  EXPECT_FALSE(room("pids"));
  group("pids/web", {{"pids.max", "5\n"}});
  EXPECT_EQ(room("pids")->room(), 2U);
}

TEST_F(LeastRoomTest, TheTightestLimitOfCpuTimeIsNamedAndTheLongestWaitCounts) {
  const auto quotas = [&] { return CpuQuotas(42, root_.path(), root_.path() + "/sys"); };
  root_.file("42/cgroup", "0::/pod/web\n");
  group("pod/web", {{"cpu.max", "max 100000\n"}, {"cpu.stat", "usage_usec 1\nthrottled_usec 9\n"}});
  EXPECT_EQ(quotas().folder(), "");
  EXPECT_EQ(quotas().waited_ns(), 0U) << "it has no limit";
  group("pod", {{"cpu.max", "50000 100000\n"},
                {"cpu.stat", "usage_usec 1\nnr_throttled 2\nthrottled_usec 7\n"}});
  EXPECT_EQ(quotas().folder(), root_.path() + "/sys/pod");
  EXPECT_DOUBLE_EQ(quotas().cpus(), 0.5);
  EXPECT_EQ(quotas().waited_ns(), 7000U);
  EXPECT_EQ(quotas().waited_above_ns(), 7000U);
  root_.file("42/cgroup", "4:cpu,cpuacct:/x\n0::/\n");
  group("cpu/x", {{"cpu.cfs_quota_us", "-1\n"}, {"cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(quotas().folder(), "");
  group("cpu/x", {{"cpu.cfs_quota_us", "5000\n"},
                  {"cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 123\n"}});
  EXPECT_DOUBLE_EQ(quotas().cpus(), 0.05);
  EXPECT_EQ(quotas().waited_ns(), 123U);
  EXPECT_EQ(quotas().waited_above_ns(), 0U);
}

TEST(OutOfMemoryKills, AreThoseOfTheWholeMachine) {
  const test::TemporaryDirectory proc;
  EXPECT_EQ(out_of_memory_kills(proc.path()), 0U);
  proc.file("vmstat", "nr_free_pages 5\noom_kill 7\noom_kill_other 9\n");
  EXPECT_EQ(out_of_memory_kills(proc.path()), 7U);
}

}  // namespace
}  // namespace kymo::probe
