#include "checkpoint/runtimes/shared/restore_lock.h"

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
  EXPECT_EQ(same.error().message.find("a dump or restore of container runc:web is under way"), 0U);
  EXPECT_TRUE(lock_for_restore({"directory /b"}, file).ok())
      << "one that was refused holds nothing";
  EXPECT_TRUE(lock_for_restore({"container runc:other"}, file).ok());
  *first = FileDescriptor();
  EXPECT_TRUE(lock_for_restore({"container runc:web"}, file).ok());
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST(RestoreLockTest, RestoresShareImagesAndADeletionHasThemAlone) {
  const test::TemporaryDirectory folder;
  const std::string file = folder.path() + "/locks";
  {
    const Result<FileDescriptor> one = lock_images({"/a"}, ImageUse::read, file);
    ASSERT_TRUE(one && one->valid());
    EXPECT_TRUE(lock_images({"/a"}, ImageUse::read, file).ok());
    EXPECT_TRUE(lock_for_restore({"directory /a"}, file).ok());
    const Result<FileDescriptor> deletion = lock_images({"/a", "/b"}, ImageUse::change, file);
    ASSERT_FALSE(deletion);
    EXPECT_EQ(deletion.error().message,
              "another kymod restores or deletes /a: wait for that to end");
  }
  const Result<FileDescriptor> deletion = lock_images({"/a", "/b"}, ImageUse::change, file);
  ASSERT_TRUE(deletion && deletion->valid());
  EXPECT_FALSE(lock_images({"/a"}, ImageUse::change, file).ok());
  const Result<FileDescriptor> restore = lock_images({"/a"}, ImageUse::read, file);
  ASSERT_FALSE(restore);
  EXPECT_EQ(restore.error().message, "another kymod deletes /a: wait for that to end");
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
