#include "checkpoint/runtimes/shared/scratch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

class ScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec_.scratch_dir = scratch_path("test-" + std::to_string(::getpid()));
    ASSERT_FALSE(spec_.scratch_dir.empty()) << "neither /run nor /dev/shm is in memory";
    spec_.images_dir = folder_.folder("images");
    spec_.work_dir = folder_.folder("work");
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(spec_.scratch_dir, error);
  }
  static void write_log(const std::string& folder) {
    std::ofstream(folder + "/dump.log") << "(00.1) a line\n";
  }

  test::TemporaryDirectory folder_;
  DumpSpec spec_;
};

TEST_F(ScratchTest, ADumpWritesThereAndItsTextsNameTheWorkDirectory) {
  const Result<DumpOutcome> outcome = in_scratch(spec_, [&](const DumpSpec& here) {
    EXPECT_EQ(here.work_dir, spec_.scratch_dir);
    struct stat info {};
    EXPECT_EQ(::stat(here.work_dir.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    write_log(here.work_dir);
    return Result<DumpOutcome>(
        Error{Code::internal, "failed (log: " + here.work_dir + "/dump.log)"});
  });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().message, "failed (log: " + spec_.work_dir + "/dump.log)");
  keep_scratch(spec_.scratch_dir, spec_.work_dir);
  EXPECT_EQ(read_file(spec_.work_dir + "/dump.log").value(), "(00.1) a line\n");
  EXPECT_FALSE(fs::exists(spec_.scratch_dir));
}

TEST_F(ScratchTest, WhatAKilledKymodHasLeftIsMoved) {
  fs::create_directories(spec_.scratch_dir);
  write_log(spec_.scratch_dir);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (spec_.scratch_dir + "/s").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  EXPECT_EQ(::bind(fd, generic, sizeof address), 0);
  ::close(fd);
  keep_scratch(spec_.scratch_dir, spec_.work_dir);
  EXPECT_TRUE(fs::exists(spec_.work_dir + "/dump.log"));
  EXPECT_FALSE(fs::exists(spec_.scratch_dir));
}

}  // namespace
}  // namespace kymo::runtime
