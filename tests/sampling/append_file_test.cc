#include "sampling/append_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>

#include "temporary_folder.h"

namespace kymo {
namespace {

// The kernel cuts a write(2) short at the file size limit, as a disk that fills does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

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

}  // namespace
}  // namespace kymo
