#include "base/mounts.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

bool is_mounted(const std::string& part) {
  const Result<std::string> mounts = read_file("/proc/self/mountinfo");
  return mounts && mounts->find(part) != std::string::npos;
}

TEST(Mounts, WhatIsMountedBelowIsDetachedAndNothingBeside) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const test::TemporaryDirectory directory;
  const std::string& folder = directory.path();
  for (const char* name : {"/images/with space", "/images/deep", "/imagesbeside"}) {
    fs::create_directories(folder + name);
    ASSERT_EQ(::mount("none", (folder + name).c_str(), "tmpfs", 0, nullptr), 0) << name;
  }
  fs::create_directory(folder + "/images/deep/er");
  ASSERT_EQ(::mount("none", (folder + "/images/deep/er").c_str(), "tmpfs", 0, nullptr), 0);

  EXPECT_TRUE(detach_mounts(folder + "/images/").ok());

  EXPECT_FALSE(is_mounted(folder + "/images/"));
  EXPECT_TRUE(is_mounted(folder + "/imagesbeside"));
  ::umount2((folder + "/imagesbeside").c_str(), MNT_DETACH);
}

TEST(Mounts, ADiskIsNamedByTheNearestFolderThatExists) {
  EXPECT_TRUE(disk_of("/proc/no/such/file").starts_with("proc ")) << disk_of("/proc/no/such/file");
  EXPECT_FALSE(disk_of("/nonexistent/folder").empty());
  EXPECT_EQ(disk_of("relative/nonexistent"), "") << "only absolute paths are accepted";
}

}  // namespace
}  // namespace kymo
