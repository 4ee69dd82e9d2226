#include "daemon/stored/job_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kMax = 64 << 10;

std::uint64_t stored(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

TEST(JobOutputTest, WhatFitsAndWhatIsNotThereIsLeftAlone) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("out", std::string(kMax / 2, 'x'));
  EXPECT_EQ(bound_output(path, kMax).value(), 0U);
  EXPECT_EQ(read_file(path)->find('\0'), std::string::npos);
  EXPECT_EQ(bound_output(folder.path() + "/none", kMax).value(), 0U);
}

TEST(JobOutputTest, AFifoInItsPlaceIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/out";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(bound_output(path, kMax).error().code, Code::invalid_argument);
}

TEST(JobOutputTest, TheOutputOfAReleasedJobIsFound) {
  const test::TemporaryDirectory folder;
  static_cast<void>(folder.folder("jobs"));
  static_cast<void>(folder.folder("jobs/kept"));
  const std::string released = folder.folder("jobs/released");
  store::Job job;
  job.id = "kept";
  EXPECT_EQ(outputs_of_released(folder.path(), {job}),
            (std::vector<std::string>{released + "/stdout", released + "/stderr"}));
}

// An implementation that copies the output and then cuts it loses what is written between the two
// steps.
TEST(JobOutputTest, NothingIsLostThatIsWrittenMeanwhile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("out", "");
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> written = 0;
  std::thread writer([&] {
    const FileDescriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    while (!stop) {
      const std::string line = "line " + std::to_string(++written) + "\n";
      std::size_t done = 0;
      if (write_all(file.get(), line, &done) != 0) return;
    }
  });
  std::uint64_t freed = 0;
  EXPECT_TRUE(test::eventually([&] {
    freed += bound_output(path, kMax).value();
    return freed > 20 * kMax;
  }));
  stop = true;
  writer.join();
  freed += bound_output(path, kMax).value();
  EXPECT_LE(stored(path), kMax);
  const std::string text = read_file(path).value();
  std::size_t at = text.find_first_not_of('\0');
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(text.size() - at, kMax / 2) << "much more was cut than necessary";
  std::uint64_t line = std::stoull(text.substr(at + 5));
  for (; at < text.size(); ++line) {
    const std::size_t end = text.find('\n', at);
    ASSERT_EQ(text.substr(at, end - at), "line " + std::to_string(line));
    at = end + 1;
  }
  EXPECT_EQ(line, written + 1);
}

}  // namespace
}  // namespace kymo::daemon
