#include "daemon/own_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

std::string refusal(const std::string& path) {
  const Result<FileDescriptor> opened = open_own_folder(path);
  return opened ? "opened" : opened.error().message;
}

TEST(OwnFolderTest, OneThatOthersCanWriteIntoOrALinkIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("work");
  for (const mode_t mode : {0700U, 0755U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(refusal(path), "opened");
  }
  for (const mode_t mode : {0770U, 0702U, 01777U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_NE(refusal(path).find(": chmod go-w " + path), std::string::npos) << refusal(path);
  }
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  const std::string link = folder.path() + "/link";
  std::filesystem::create_directory_symlink(path, link);
  EXPECT_NE(refusal(link).find("it is a link, which is not followed"), std::string::npos);
  EXPECT_NE(refusal(folder.file("file", "")).find("Not a directory"), std::string::npos);
  EXPECT_EQ(open_own_folder(folder.path() + "/none").error().code, Code::not_found);
}

TEST(OwnFolderTest, OneOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("work");
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(path).find("it belongs to uid 65534"), std::string::npos) << refusal(path);
  EXPECT_NE(refusal(path).find("chown it to uid 0"), std::string::npos) << refusal(path);
}

}  // namespace
}  // namespace kymo::daemon
