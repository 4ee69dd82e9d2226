#include "daemon/state/state_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

TEST(StateDirTest, ANewOneIsPrivateAndOneDaemonHasIt) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/some/state";
  const Result<FileDescriptor> taken = take_state_dir(path);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  EXPECT_EQ(take_state_dir(path).error().code, Code::already_exists);
}

// Another user who can write into this folder chooses what root runs and restores.
TEST(StateDirTest, OneThatOthersCanWriteIntoIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("state");
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  const Result<FileDescriptor> refused = take_state_dir(path);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "cannot use the state directory " + path +
                ": other users may write into it (mode 0777) and could change what kymod writes "
                "there: chmod go-w " +
                path + ", or name another with --state-dir");
  EXPECT_FALSE(fs::exists(path + "/lock"));
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_TRUE(take_state_dir(path).ok());
}

TEST(StateDirTest, ALinkOfOursIsFollowedAndAnotherUsersIsNot) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("state");
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  const std::string link = folder.path() + "/link";
  fs::create_directory_symlink(path, link);
  EXPECT_TRUE(take_state_dir(link).ok());
  EXPECT_TRUE(take_state_dir(link + "/").ok());
  EXPECT_TRUE(fs::exists(path + "/lock"));
  if (geteuid() != 0) return;  // only root can make a link that belongs to another user
  ASSERT_EQ(lchown(link.c_str(), 65534, 65534), 0);
  for (const char* ending : {"", "/"}) {
    const Result<FileDescriptor> refused = take_state_dir(link + ending);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("it is a link"), std::string::npos)
        << refused.error().message;
  }
}

// A user who can open the database can lock it, and can read the command lines of all jobs.
TEST(StateDirTest, OneThatWasThereIsClosedToOthers) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("state");
  for (const mode_t before : {0755U, 0750U, 02755U, 0710U}) {
    ASSERT_EQ(chmod(path.c_str(), before), 0);
    ASSERT_TRUE(take_state_dir(path).ok());
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U) << before;
  }
}

TEST(StateDirTest, OneThatAnotherUserCouldReplaceIsRefused) {
  if (geteuid() != 0) return;  // only root can change the owner of a folder
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("theirs") + "/state";
  ASSERT_TRUE(take_state_dir(path).ok());
  ASSERT_EQ(chown((folder.path() + "/theirs").c_str(), 65534, 65534), 0);
  const Result<FileDescriptor> refused = take_state_dir(path);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("it belongs to uid 65534, who could replace it"),
            std::string::npos)
      << refused.error().message;
}

TEST(StateDirTest, ALockThatIsALinkIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("state");
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  fs::create_symlink(folder.path() + "/elsewhere", path + "/lock");
  EXPECT_FALSE(take_state_dir(path).ok());
  EXPECT_FALSE(fs::exists(folder.path() + "/elsewhere"));
}

}  // namespace
}  // namespace kymo::daemon
