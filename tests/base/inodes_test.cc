#include "base/inodes.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <string>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo {
namespace {

TEST(InodesTest, AFewAreToldOnlyIfTheFileSystemHasANumberOfThem) {
  const test::TemporaryDirectory folder;
  const std::string disk = folder.folder("disk");
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=1m,nr_inodes=20") != 0) {
    GTEST_SKIP() << "no right to mount";
  }
  EXPECT_FALSE(few_free_inodes(disk + "/nobody/here").has_value());
  int files = 0;
  while (replace_file(disk + "/" + std::to_string(files), "").ok()) ++files;
  EXPECT_EQ(few_free_inodes(disk + "/nobody/here"), std::optional<std::uint64_t>(0));
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
  EXPECT_FALSE(few_free_inodes("/proc/self/fd").has_value()) << "it makes them as it needs them";
}

TEST(InodesTest, TheAdviceIsKnownAgainInAMessage) {
  EXPECT_TRUE(has_advice_on_inodes("cannot make /x" + advice_on_few_inodes(0) + "; it runs on"));
  EXPECT_TRUE(has_advice_on_inodes("cannot make /x" + advice_on_few_inodes(3)));
  EXPECT_FALSE(has_advice_on_inodes("cannot make /x: No space left on device"));
}

}  // namespace
}  // namespace kymo
