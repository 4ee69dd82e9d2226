#include "recorder/sampling/files/append_file.h"

#include <cerrno>

#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class AppendFileTest : public TemporaryFolderTest {};

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

TEST_F(AppendFileTest, ARemovedFileIsSaid) {
  AppendFile file = AppendFile::create(in_folder("rows")).value();
  EXPECT_EQ(file.change(), FileChange::none);
  std::filesystem::remove(in_folder("rows"));
  EXPECT_EQ(file.change(), FileChange::removed);
}

}  // namespace
}  // namespace kymo
