#include "runtime/scratch.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/moody_disk.h"
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

TEST_F(ScratchTest, ADumpWritesThereAndItsFilesAndTextsAreOfTheWorkDirectory) {
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
  EXPECT_EQ(read_file(spec_.work_dir + "/dump.log").value(), "(00.1) a line\n");
  EXPECT_FALSE(fs::exists(spec_.scratch_dir));
}

// A work directory without room for what a dump has written.
class FullScratchTest : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (::mount("kymo", spec_.work_dir.c_str(), "tmpfs", 0, "size=64k") != 0) {
      GTEST_SKIP() << "needs root to mount";
    }
  }
  void TearDown() override {
    static_cast<void>(::umount(spec_.work_dir.c_str()));
    ScratchTest::TearDown();
  }
  DumpOutcome outcome_of_a_dump_that_writes(const std::string& name) {
    const Result<DumpOutcome> outcome = in_scratch(spec_, [&](const DumpSpec& here) {
      std::ofstream(here.work_dir + name) << std::string(100'000, 'x');
      return Result<DumpOutcome>(DumpOutcome());
    });
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(fs::file_size(spec_.scratch_dir + name), 100'000U);
    return outcome.ok() ? *outcome : DumpOutcome();
  }
};

// Nothing was said.
TEST_F(FullScratchTest, ALogThatStaysInMemoryIsNamed) {
  const DumpOutcome outcome = outcome_of_a_dump_that_writes("/dump.log");
  EXPECT_FALSE(outcome.unconfirmed);
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_NE(outcome.warnings[0].find(spec_.scratch_dir), std::string::npos) << outcome.warnings[0];
}

// The checkpoint was complete, and its restore gave the container an empty /dev/shm.
TEST_F(FullScratchTest, WithoutItsSharedMemoryACheckpointIsNotComplete) {
  const DumpOutcome outcome = outcome_of_a_dump_that_writes(kSharedMemory);
  ASSERT_TRUE(outcome.unconfirmed);
  EXPECT_NE(outcome.unconfirmed->message.find(spec_.scratch_dir), std::string::npos)
      << outcome.unconfirmed->message;
  EXPECT_TRUE(outcome.whole_in_memory);
  EXPECT_TRUE(is_part_in_scratch(spec_));
}

// Before the fix, the socket of a killed image streamer stayed, and with it the directory.
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
  keep_scratch(spec_, std::chrono::seconds(30));
  EXPECT_TRUE(fs::exists(spec_.work_dir + "/dump.log"));
  EXPECT_FALSE(fs::exists(spec_.scratch_dir));
}

TEST_F(ScratchTest, FilesThatTheDiskDoesNotTakeYetAreMovedLater) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  spec_.work_dir = disk.path() + "/work";
  fs::create_directory(spec_.work_dir);
  fs::create_directories(spec_.scratch_dir);
  write_log(spec_.scratch_dir);
  disk.stop();
  keep_scratch(spec_, std::chrono::milliseconds(0));
  EXPECT_TRUE(fs::exists(spec_.scratch_dir + "/dump.log"));
  disk.go_on();
  EXPECT_TRUE(test::eventually([&] { return !fs::exists(spec_.scratch_dir); }));
  EXPECT_TRUE(fs::exists(spec_.work_dir + "/dump.log"));
}

}  // namespace
}  // namespace kymo::runtime
