#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "support/temporary_directory.h"

namespace {

// Whether the file was still open in this process when this thread last called rename(2).
thread_local bool was_open_at_rename = false;
// Set only by the test that needs it: ThreadSanitizer reports it as a race if one thread looks at
// another thread's descriptors.
thread_local bool looks_at_rename = false;

bool is_open(const char* path) {
  struct stat named {};
  if (::stat(path, &named) != 0) return false;
  for (int fd = 0; fd < 256; ++fd) {
    struct stat one {};
    if (::fstat(fd, &one) == 0 && one.st_dev == named.st_dev && one.st_ino == named.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace

// Replaces libc's function.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's names are reserved
extern "C" int rename(const char* from, const char* to) noexcept {
  if (looks_at_rename) was_open_at_rename = is_open(from);
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

namespace kymo {
namespace {

class FileTest : public ::testing::Test {
 protected:
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  test::TemporaryDirectory directory_;
  std::string folder_ = directory_.path();
};

TEST_F(FileTest, CreatesOnlyWhatIsNotThere) {
  const std::string path = folder_ + "/new";
  ASSERT_TRUE(create_append_only(path));
  const Result<FileDescriptor> again = create_append_only(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::already_exists);
  EXPECT_NE(again.error().message.find(path), std::string::npos);
}

TEST_F(FileTest, NamesTheFolderThatIsMissing) {
  const Result<FileDescriptor> none = create_append_only(folder_ + "/no/file");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::not_found);
  EXPECT_NE(none.error().message.find("create its folder first"), std::string::npos);
}

TEST_F(FileTest, AFolderThatIsThereWasCalledMissing) {
  const Result<FileDescriptor> none = create_append_only("/proc/kymo.tsv");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "cannot create /proc/kymo.tsv: No such file or directory; its folder exists, but takes "
            "no files: choose another folder");
}

TEST_F(FileTest, ReplacesWholeAndLeavesNoTemporary) {
  const std::string path = folder_ + "/meta";
  ASSERT_TRUE(replace_file(path, "one"));
  ASSERT_TRUE(replace_file(path, "two"));
  EXPECT_EQ(content(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_),
                          std::filesystem::directory_iterator()),
            1);
}

TEST_F(FileTest, TwoWritersOfOneFileNeverPublishAHalfOne) {
  const std::string path = folder_ + "/meta";
  const std::string texts[] = {std::string(300'000, 'a'), std::string(200'000, 'b')};
  std::atomic<int> failed{0};
  std::atomic<int> writers{2};
  std::vector<std::thread> threads;
  for (const std::string& text : texts) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) failed += replace_file(path, text).ok() ? 0 : 1;
      --writers;
    });
  }
  int halves = 0;
  while (writers.load() > 0) {
    const Result<std::string> seen = read_file(path);
    halves += seen && *seen != texts[0] && *seen != texts[1] ? 1 : 0;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(halves, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_),
                          std::filesystem::directory_iterator()),
            1)
      << "a temporary file is left in the folder";
}

// A rename can take milliseconds. If a process is dumped while it has the file open, it cannot be
// restored after the file has changed, because CRIU compares the size.
TEST_F(FileTest, AReplacedFileIsNotOpenAnyMoreWhenItGetsItsName) {
  was_open_at_rename = true;
  looks_at_rename = true;
  const bool replaced = replace_file(folder_ + "/text", "new").ok();
  looks_at_rename = false;
  ASSERT_TRUE(replaced);
  EXPECT_FALSE(was_open_at_rename);
}

TEST_F(FileTest, WhatAKilledWriterLeftIsInNobodysWay) {
  const std::string path = folder_ + "/meta";
  const std::string begin = path + ".new-" + std::to_string(::getpid()) + '-';
  for (int n = 0; n < 300; ++n) std::ofstream(begin + std::to_string(n)) << "half";
  ASSERT_TRUE(replace_file(path, "whole"));
  EXPECT_EQ(content(path), "whole");
  EXPECT_EQ(content(begin + "299"), "half");
}

TEST_F(FileTest, WriteAllReportsWhatGotThrough) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY));
  std::size_t written = 7;
  EXPECT_EQ(write_all(full.get(), "text", &written), ENOSPC);
  EXPECT_EQ(written, 0U);
}

// A dump once crashed the daemon: the process ended after its /proc/PID/stat had been opened and
// before it was read.
TEST_F(FileTest, ReadingWhatIsGoneIsAnErrorAndNoException) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string stat = "/proc/" + std::to_string(child) + "/stat";
  const int opened = ::open(stat.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(opened, 0);
  EXPECT_TRUE(read_file(stat).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const Result<std::string> gone = read_file("/proc/self/fd/" + std::to_string(opened));
  EXPECT_FALSE(gone.ok());
  ::close(opened);
  EXPECT_EQ(read_file(stat).error().errno_value, ENOENT);
}

TEST_F(FileTest, ReplacesAFileAndNotWhatALinkInItsWayNames) {
  const std::string precious = folder_ + "/precious";
  std::ofstream(precious) << "precious";
  ASSERT_EQ(::symlink(precious.c_str(), (folder_ + "/text").c_str()), 0);
  ASSERT_TRUE(replace_file(folder_ + "/text", "new"));
  EXPECT_EQ(*read_file(folder_ + "/text"), "new");
  EXPECT_EQ(*read_file(precious), "precious");
}

TEST_F(FileTest, FoldersAreNotForOthersToWriteIntoWhateverTheUmask) {
  const mode_t before = ::umask(0);
  make_folders(folder_ + "/some/where/deep");
  ::umask(before);
  for (const char* made : {"some", "some/where", "some/where/deep"}) {
    struct stat info {};
    ASSERT_EQ(::stat((folder_ + "/" + made).c_str(), &info), 0) << made;
    EXPECT_EQ(info.st_mode & 07777U, 0755U) << made;
  }
  EXPECT_EQ(make_folders(folder_ + "/some/where"), 0);
  std::ofstream(folder_ + "/file") << "";
  EXPECT_EQ(make_folders(folder_ + "/file"), ENOTDIR);
  EXPECT_EQ(make_folders(folder_ + "/file/below"), ENOTDIR);
}

TEST_F(FileTest, OpensOnlyARegularFileAndNeverWaits) {
  const test::TemporaryDirectory folder;
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(open_regular(folder.file("file", "text")).ok());
  EXPECT_EQ(open_regular(folder.path() + "/none").error().code, Code::not_found);
  for (const auto& [path, kind] : std::map<std::string, std::string>{
           {fifo, "a FIFO"}, {folder.path(), "a folder"}, {"/dev/null", "a device"}}) {
    const Result<FileDescriptor> refused = open_regular(path);
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
    EXPECT_EQ(refused.error().message, "cannot read " + path + ": it is not a regular file (" +
                                           kind + "): remove it or name another file");
    EXPECT_EQ(read_file(path).error().message, refused.error().message);
  }
  // The result is the same with and without a reader of the FIFO.
  EXPECT_FALSE(open_regular(fifo, O_WRONLY).ok());
  const FileDescriptor other(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(open_regular(fifo, O_WRONLY).error().code, Code::invalid_argument);
}

TEST_F(FileTest, ReadsAWholeFileAndNoneThatIsTooLarge) {
  const std::string path = folder_ + "/text";
  const std::string text(100'000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(read_file(path).value(), text);
  EXPECT_EQ(read_file(path, 99'999).error().code, Code::data_loss);
  EXPECT_FALSE(read_file(folder_).ok());
}

}  // namespace
}  // namespace kymo
