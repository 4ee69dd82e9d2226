#include "runtime/restore_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

TEST(RestoreLockTest, IsHeldByOneAtATimeAndEndsWithItsDescriptor) {
  const test::TemporaryDirectory folder;
  const std::string file = folder.path() + "/locks";
  Result<FileDescriptor> first = lock_for_restore({"directory /a", "container runc:web"}, file);
  ASSERT_TRUE(first && first->valid());
  const Result<FileDescriptor> same =
      lock_for_restore({"directory /b", "container runc:web"}, file);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, Code::failed_precondition);
  EXPECT_EQ(same.error().message.find("a restore of container runc:web is under way"), 0U);
  EXPECT_TRUE(lock_for_restore({"directory /b"}, file).ok())
      << "one that was refused holds nothing";
  EXPECT_TRUE(lock_for_restore({"container runc:other"}, file).ok());
  *first = FileDescriptor();
  EXPECT_TRUE(lock_for_restore({"container runc:web"}, file).ok());
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST(RestoreLockTest, WhereThereCanBeNoFileARestoreGoesOnWithoutALock) {
  const test::TemporaryDirectory folder;
  const Result<FileDescriptor> lock =
      lock_for_restore({"directory /a"}, folder.path() + "/missing/locks");
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(lock->valid());
}

}  // namespace
}  // namespace kymo::runtime
