#include "recorder/sampling/recover/file_end.h"

#include "support/temporary_folder.h"

namespace kymo {
namespace {

class FileEndTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    path_ = in_folder("rows");
  }
  static Result<FileEnd> behind(const std::string& path, std::uint64_t kept) {
    Result<FileDescriptor> fd = FileEnd::open_own(path);
    return fd ? FileEnd::from(*std::move(fd), path, kept) : fd.error();
  }

  std::string path_;
};

TEST_F(FileEndTest, TheFileIsNeverShorterThanItWasBeforeItsNewEndIsThere) {
  std::ofstream(path_) << "one\ntwo\nthr";
  FileEnd end = behind(path_, 4).value();
  EXPECT_EQ(end.old_bytes(), 7U);
  EXPECT_EQ(end.read_old(4, 10).value(), "thr");
  EXPECT_EQ(content(path_), "one\ntwo\nthr");
  ASSERT_EQ(end.append("2\n"), 0);
  EXPECT_EQ(content(path_), "one\n2\no\nthr");
  ASSERT_TRUE(end.finish());
  EXPECT_EQ(content(path_), "one\n2\n");
}

TEST_F(FileEndTest, ALongerEndMakesTheFileLonger) {
  std::ofstream(path_) << "one\ntw";
  FileEnd end = behind(path_, 4).value();
  ASSERT_EQ(end.append("two\n"), 0);
  ASSERT_EQ(end.append("three\n"), 0);
  ASSERT_TRUE(end.finish());
  EXPECT_EQ(content(path_), "one\ntwo\nthree\n");
}

TEST_F(FileEndTest, RefusesAFileThatIsTooShortOrMissing) {
  std::ofstream(path_) << "one\n";
  EXPECT_EQ(behind(path_, 5).error().code, Code::data_loss);
  EXPECT_EQ(behind(in_folder("none"), 0).error().code, Code::not_found);
  EXPECT_EQ(content(path_), "one\n");
}

// The file that was opened is changed, also if another file has its name by then.
TEST_F(FileEndTest, GoesOnWithTheFileThatWasOpened) {
  std::ofstream(path_) << "one\ntwo\n";
  Result<FileDescriptor> fd = FileEnd::open_own(path_);
  ASSERT_TRUE(fd);
  std::filesystem::rename(path_, in_folder("moved"));
  std::ofstream(path_) << "precious\n";
  FileEnd end = FileEnd::from(*std::move(fd), path_, 4).value();
  ASSERT_EQ(end.append("2\n"), 0);
  ASSERT_TRUE(end.finish());
  EXPECT_EQ(content(in_folder("moved")), "one\n2\n");
  EXPECT_EQ(content(path_), "precious\n");
}

}  // namespace
}  // namespace kymo
