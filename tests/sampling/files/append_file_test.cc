#include "sampling/files/append_file.h"

#include <cerrno>

#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class AppendFileTest : public TemporaryFolderTest {
 protected:
  static Result<AppendFile> resume(const std::string& path, std::uint64_t size) {
    Result<FileDescriptor> fd = AppendFile::open_own(path);
    return fd ? AppendFile::resume(*std::move(fd), path, size) : fd.error();
  }
};

TEST_F(AppendFileTest, AnAppendCutShortLeavesNoTrace) {
  AppendFile file = AppendFile::create(in_folder("rows")).value();
  ASSERT_EQ(file.append("first line\n"), 0);
  {
    const FileSizeLimit limit(15);
    EXPECT_EQ(file.append("second line\n"), EFBIG);
    EXPECT_EQ(content(in_folder("rows")), "first line\n");
    EXPECT_EQ(file.append("third line\n"), EFBIG);
  }
  EXPECT_EQ(file.append("fourth line\n"), 0);
  EXPECT_EQ(content(in_folder("rows")), "first line\nfourth line\n");
  EXPECT_EQ(file.size(), 23U);
}

TEST_F(AppendFileTest, TakesBackWholeAppends) {
  AppendFile file = AppendFile::create(in_folder("rows")).value();
  ASSERT_EQ(file.append("one\n"), 0);
  const std::uint64_t size = file.size();
  ASSERT_EQ(file.append("two\n"), 0);
  file.cut_back_to(size);
  ASSERT_EQ(file.append("three\n"), 0);
  EXPECT_EQ(content(in_folder("rows")), "one\nthree\n");
}

TEST_F(AppendFileTest, RefusesAFileThatExists) {
  ASSERT_TRUE(AppendFile::create(in_folder("rows")));
  EXPECT_EQ(AppendFile::create(in_folder("rows")).error().code, Code::already_exists);
}

TEST_F(AppendFileTest, GoesOnBehindWhatWasKept) {
  std::ofstream(in_folder("rows")) << "one\ntwo\nthr";
  {
    AppendFile file = resume(in_folder("rows"), 4).value();
    EXPECT_EQ(file.size(), 4U);
    ASSERT_EQ(file.append("2\n"), 0);
  }
  EXPECT_EQ(content(in_folder("rows")), "one\n2\n");
  EXPECT_EQ(resume(in_folder("rows"), 7).error().code, Code::data_loss);
  EXPECT_EQ(resume(in_folder("none"), 0).error().code, Code::not_found);
  EXPECT_EQ(content(in_folder("rows")), "one\n2\n");
}

// The file that was opened is cut, also if another file has its name by then.
TEST_F(AppendFileTest, GoesOnWithTheFileThatWasOpened) {
  std::ofstream(in_folder("rows")) << "one\ntwo\n";
  Result<FileDescriptor> fd = AppendFile::open_own(in_folder("rows"));
  ASSERT_TRUE(fd);
  std::filesystem::rename(in_folder("rows"), in_folder("moved"));
  std::ofstream(in_folder("rows")) << "precious\n";
  AppendFile file = AppendFile::resume(*std::move(fd), in_folder("rows"), 4).value();
  ASSERT_EQ(file.append("2\n"), 0);
  EXPECT_EQ(content(in_folder("moved")), "one\n2\n");
  EXPECT_EQ(content(in_folder("rows")), "precious\n");
}

TEST_F(AppendFileTest, ARemovedFileIsSaidOnlyWhereTheFileSystemCountsNames) {
  AppendFile file = AppendFile::create(in_folder("rows")).value();
  EXPECT_EQ(file.change(), FileChange::none);
  std::filesystem::remove(in_folder("rows"));
  EXPECT_EQ(file.change(), FileChange::removed);
  // A file that has no name when it is opened. A file system that does not count the names of a
  // file looks the same.
  std::ofstream(in_folder("rows")) << "one\n";
  Result<FileDescriptor> fd = AppendFile::open_own(in_folder("rows"));
  ASSERT_TRUE(fd);
  std::filesystem::remove(in_folder("rows"));
  AppendFile uncounted = AppendFile::resume(*std::move(fd), in_folder("rows"), 4).value();
  ASSERT_EQ(uncounted.append("two\n"), 0);
  EXPECT_EQ(uncounted.change(), FileChange::none);
}

}  // namespace
}  // namespace kymo
