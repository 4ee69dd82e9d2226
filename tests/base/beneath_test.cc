#include "base/beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;
using Open = Result<FileDescriptor> (*)(const std::string&, const std::string&, int, mode_t);

class BeneathTest : public testing::TestWithParam<Open> {
 protected:
  BeneathTest() {
    static_cast<void>(folder_.file("outside", "secret"));
    static_cast<void>(folder_.folder("in"));
    static_cast<void>(folder_.folder("in/sub"));
    static_cast<void>(folder_.file("in/sub/file", "text"));
    fs::create_symlink(folder_.path() + "/outside", in_ + "/link");
    fs::create_symlink("sub/file", in_ + "/inner");
    fs::create_directory_symlink(folder_.path(), in_ + "/up");
    fs::create_directory_symlink("sub", in_ + "/other");
    fs::create_directory_symlink(in_, folder_.path() + "/to-in");
  }
  [[nodiscard]] Result<FileDescriptor> open(const std::string& name, int flags = O_RDONLY,
                                            mode_t mode = 0) const {
    return GetParam()(in_, name, flags, mode);
  }

  test::TemporaryDirectory folder_;
  std::string in_ = folder_.path() + "/in";
};

TEST_P(BeneathTest, OpensAndMakesFilesInTheFolder) {
  EXPECT_TRUE(open("sub/file").ok());
  EXPECT_TRUE(open("sub", O_RDONLY | O_DIRECTORY).ok());
  EXPECT_TRUE(open("sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600).ok());
  EXPECT_TRUE(fs::exists(in_ + "/sub/new"));
  EXPECT_EQ(open("none").error().code, Code::not_found);
  EXPECT_EQ(GetParam()(folder_.path() + "/none", "file", O_RDONLY, 0).error().code,
            Code::not_found);
}

TEST_P(BeneathTest, FollowsALinkToTheFolderButNoneInIt) {
  EXPECT_TRUE(GetParam()(folder_.path() + "/to-in", "sub/file", O_RDONLY, 0).ok());
  for (const char* name : {"link", "inner", "up/outside", "other/file", "up", "../outside",
                           "sub/../../outside", "/etc/passwd"}) {
    EXPECT_FALSE(open(name).ok()) << name;
    EXPECT_FALSE(open(name, O_WRONLY | O_CREAT, 0600).ok()) << name;
  }
  const Result<FileDescriptor> refused = open("link");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::permission_denied);
  EXPECT_NE(refused.error().message.find("a link is in the way"), std::string::npos);
}

TEST_P(BeneathTest, RefusesAFifoWithoutWaiting) {
  ASSERT_EQ(::mkfifo((in_ + "/fifo").c_str(), 0600), 0);
  const FileDescriptor other(::open((in_ + "/fifo").c_str(), O_RDWR | O_CLOEXEC));
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
    EXPECT_EQ(open("fifo", flags).error().code, Code::invalid_argument);
  }
  EXPECT_EQ(open("sub").error().code, Code::invalid_argument)
      << "a folder can be opened only as a folder";
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutOpenat2, BeneathTest,
                         testing::Values(&open_beneath, &open_beneath_by_parts));

TEST(ReadBeneathTest, ReadsARegularFileAndNothingElse) {
  const test::TemporaryDirectory folder;
  static_cast<void>(folder.file("file", "text"));
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_beneath(folder.path(), "file").value(), "text");
  EXPECT_EQ(read_beneath(folder.path(), "file", 3).error().code, Code::data_loss);
  EXPECT_EQ(read_beneath(folder.path(), "pipe").error().code, Code::invalid_argument);
}

TEST(NoLinkTest, AFileIsOpenedByItsPathAndALinkInItsPlaceIsNot) {
  const test::TemporaryDirectory folder;
  const std::string file = folder.file("file", "text");
  const std::string link = folder.path() + "/link";
  fs::create_symlink(file, link);
  const std::string to_folder = folder.path() + "/to-folder";
  fs::create_directory_symlink(folder.path(), to_folder);
  EXPECT_EQ(read_no_link(file).value(), "text");
  EXPECT_EQ(read_no_link(to_folder + "/file").value(), "text") << "the folder may be a link";
  EXPECT_EQ(read_no_link(file, 3).error().code, Code::data_loss);
  EXPECT_EQ(read_no_link(link).error().code, Code::permission_denied);
  EXPECT_EQ(open_no_link(to_folder + "/link", O_RDONLY).error().code, Code::permission_denied);
  fs::current_path(folder.path());
  EXPECT_EQ(read_no_link("file").value(), "text") << "a name without a folder";
}

}  // namespace
}  // namespace kymo
