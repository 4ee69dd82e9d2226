#include "base/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace kymo {
namespace {

std::string text_of(Result<TextFile> file) {
  std::string text(100, '\0');
  text.resize(file->read(text.data(), text.size()).value());
  return text;
}

TEST(TextFileTest, APipeIsReadWhereAnyFileIsExpected) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "Time (ns)\n", 10), 10);
  ::close(ends[1]);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
  EXPECT_FALSE(TextFile::open_regular(path));
  EXPECT_EQ(text_of(TextFile::open(path)), "Time (ns)\n");
  ::close(ends[0]);
}

// The creator of a pipe may never write to it, or may keep its other end open for ever.
TEST(TextFileTest, APipeWithANameAndADeviceAreRefused) {
  const test::TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(TextFile::open(fifo).error().code, Code::invalid_argument);
  EXPECT_EQ(TextFile::open("/dev/zero").error().code, Code::invalid_argument);
}

TEST(TextFileTest, OpenRegularNeverWaitsAndRefusesAllElse) {
  const test::TemporaryDirectory directory;
  const std::string& folder = directory.path();
  ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(TextFile::open_regular(folder + "/fifo").error().code, Code::invalid_argument);
  EXPECT_EQ(TextFile::open_regular(folder).error().code, Code::invalid_argument);
  EXPECT_EQ(TextFile::open_regular(folder + "/none").error().code, Code::not_found);
  std::ofstream(folder + "/file") << "text";
  EXPECT_EQ(text_of(TextFile::open_regular(folder + "/file")), "text");
}

}  // namespace
}  // namespace kymo
