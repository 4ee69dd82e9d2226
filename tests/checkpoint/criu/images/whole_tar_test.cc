#include "checkpoint/criu/images/whole_tar.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

class WholeTarTest : public ::testing::Test {
 protected:
  // Archives files, one of them with a long name, two names of one file, and a folder.
  void make(const std::string& format) {
    const std::string files = folder_.folder("files-" + format);
    std::ofstream(files + "/x") << std::string(70'000, 'x');
    std::ofstream(files + "/" + std::string(200, 'n')) << std::string(1000, 'y');
    fs::create_hard_link(files + "/x", files + "/z");
    fs::create_directory(files + "/folder");
    ASSERT_TRUE(
        test::shell("tar --format=" + format + " -C '" + files + "' -cf '" + path_ + "' .").second);
  }

  test::TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/a.tar";
};

TEST_F(WholeTarTest, AnArchiveIsWholeWhateverItsFormat) {
  for (const char* const format : {"posix", "gnu"}) {
    make(format);
    const TarSeen seen = look_at_tar(path_);
    EXPECT_EQ(seen.fault, "");
    EXPECT_EQ(seen.file_bytes, 71'000U);
  }
}

TEST_F(WholeTarTest, EachCutIsFound) {
  for (const char* const format : {"posix", "gnu"}) {
    make(format);
    // tar fills the last 10 KiB with zeros, of which the first block is the end.
    const std::uintmax_t size = fs::file_size(path_) / 512 * 512;
    std::uintmax_t cuts = 0;
    for (std::uintmax_t left = size; left > 0; left -= 512) {
      fs::resize_file(path_, left - 256);
      if (!look_at_tar(path_).fault.empty()) ++cuts;
      fs::resize_file(path_, left - 512);
      if (!look_at_tar(path_).fault.empty()) ++cuts;
    }
    EXPECT_GE(cuts, 2 * 72'000U / 512) << "all but those in the zeros at the end";
    EXPECT_EQ(look_at_tar(path_).fault, path_ + " is cut off: it has 0 bytes and no end");
  }
}

TEST_F(WholeTarTest, WhatIsNoArchiveIsDamaged) {
  std::ofstream(path_) << std::string(2048, 'x');
  EXPECT_EQ(look_at_tar(path_).fault, path_ + " is damaged at byte 0");
  EXPECT_NE(look_at_tar(path_ + "-none").fault, "");
}

}  // namespace
}  // namespace kymo::criu
