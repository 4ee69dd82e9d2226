#include "daemon/state/own_folder.h"

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

// A checkpoint's author could swap its folder for a link between our look and our writing.
TEST(OwnPathTest, OneThatOthersCanLeadElsewhereIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const test::TemporaryDirectory folder;
  const std::string theirs = folder.folder("theirs");
  const std::string inside = folder.folder("theirs/c");
  const std::string ours = folder.folder("ours");
  const auto refused = [](const std::string& path) {
    const Result<void> checked = check_own_path(path);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refused(inside), "") << "below /tmp, which is sticky";
  EXPECT_EQ(refused(folder.path() + "/not/there/yet"), "");
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(refused(inside).starts_with(theirs + ": it belongs to uid 65534")) << refused(inside);
  std::filesystem::create_directory_symlink(inside, ours + "/link");
  std::filesystem::create_directory_symlink("../theirs/c", ours + "/relative");
  for (const char* link : {"/link", "/relative", "/relative/deeper"}) {
    EXPECT_TRUE(refused(ours + link).starts_with(theirs) ||
                refused(ours + link).starts_with(ours + "/../theirs"))
        << refused(ours + link);
  }
  ASSERT_EQ(chown(theirs.c_str(), 0, 0), 0);
  EXPECT_EQ(refused(ours + "/link"), "");
  ASSERT_EQ(chmod(theirs.c_str(), 0775), 0);
  EXPECT_NE(refused(inside).find("other users may write into it (mode 0775)"), std::string::npos);
  ASSERT_EQ(lchown((ours + "/link").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(refused(ours + "/link").starts_with(ours + "/link: it belongs to uid 65534"));
  std::filesystem::create_directory_symlink("round", ours + "/round");
  EXPECT_NE(refused(ours + "/round").find("Too many levels"), std::string::npos);
}

}  // namespace
}  // namespace kymo::daemon
