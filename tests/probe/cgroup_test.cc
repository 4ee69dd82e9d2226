#include "probe/cgroup.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kymo::probe
