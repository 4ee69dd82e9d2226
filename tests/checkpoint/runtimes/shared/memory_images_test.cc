#include "checkpoint/runtimes/shared/memory_images.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kWatchdog{30};

class MemoryImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> chosen = choose_memory_images(name_, 1000, disk_);
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    memory_ = *chosen;
  }
  void TearDown() override { drop_memory_images(memory_); }

  // Writes the files that CRIU writes, with one round of pre-dump.
  void dump_to_memory(const std::string& pages = "pages") {
    ASSERT_TRUE(make_memory_images(memory_).ok());
    fs::create_directory(memory_ + "/pre-1");
    std::ofstream(memory_ + "/pre-1/pages-1.img") << "old";
    fs::create_symlink("pre-1", memory_ + "/parent");
    std::ofstream(memory_ + "/pages-1.img") << pages;
    std::ofstream(memory_ + "/inventory.img") << "inventory";
  }
  void expect_whole_on_disk(const std::string& folder) {
    EXPECT_EQ(read_file(folder + "/pages-1.img").value(), "pages");
    EXPECT_EQ(read_file(folder + "/parent/pages-1.img").value(), "old");
    EXPECT_TRUE(fs::is_symlink(folder + "/parent"));
    EXPECT_EQ(read_file(folder + "/inventory.img").value(), "inventory");
    EXPECT_EQ(find_memory_images(name_), "");
  }

  test::TemporaryDirectory folder_;
  const std::string disk_ = folder_.folder("images.partial");
  const std::string name_ = "test-" + std::to_string(::getpid());
  std::string memory_;
};

TEST_F(MemoryImagesTest, AreFoundByTheNameOfTheDumpAndPrivate) {
  EXPECT_EQ(find_memory_images(name_), "");
  dump_to_memory();
  EXPECT_EQ(find_memory_images(name_), memory_);
  EXPECT_TRUE(whole_in_memory(memory_));
  struct stat info {};
  ASSERT_EQ(::stat(memory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  drop_memory_images(memory_);
  EXPECT_EQ(find_memory_images(name_), "");
}

TEST_F(MemoryImagesTest, AreBroughtToTheirDiskWithTheirRounds) {
  dump_to_memory();
  const Result<void> brought = bring_images(memory_, disk_, true);
  ASSERT_TRUE(brought.ok()) << brought.error().message;
  expect_whole_on_disk(disk_);
}

// The files that a failed attempt has left on the disk must not be mixed with the new ones.
TEST_F(MemoryImagesTest, ReplaceWhatIsThere) {
  dump_to_memory();
  std::ofstream(disk_ + "/pages-9.img") << "of an attempt that failed";
  fs::create_symlink("nowhere", disk_ + "/parent");
  ASSERT_TRUE(bring_images(memory_, disk_, true).ok());
  expect_whole_on_disk(disk_);
  EXPECT_FALSE(fs::exists(disk_ + "/pages-9.img"));
}

TEST_F(MemoryImagesTest, StayInMemoryUntilTheirDiskHasReallyWrittenThem) {
  const test::MoodyDisk disk(folder_);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string images = disk.path() + "/images";
  fs::create_directory(images);
  dump_to_memory();
  disk.be("forgets");
  EXPECT_FALSE(bring_images(memory_, images, true).ok());
  EXPECT_TRUE(whole_in_memory(memory_));
  disk.be("well");
  ASSERT_TRUE(bring_images(memory_, images, true).ok());
  expect_whole_on_disk(images);
  EXPECT_NE(disk.synced().find("/images/inventory.img"), std::string::npos) << disk.synced();
}

TEST_F(MemoryImagesTest, StayInMemoryWhileTheirDiskIsFull) {
  const std::string full = folder_.folder("full");
  ASSERT_EQ(::mount("kymo", full.c_str(), "tmpfs", 0, "size=64k"), 0);
  dump_to_memory(std::string(100'000, 'p'));
  const Result<void> brought = bring_images(memory_, full, true);
  EXPECT_EQ(::umount(full.c_str()), 0);
  ASSERT_FALSE(brought.ok());
  EXPECT_EQ(brought.error().code, Code::resource_exhausted);
  EXPECT_NE(brought.error().message.find(full + " has "), std::string::npos)
      << brought.error().message;
  EXPECT_TRUE(whole_in_memory(memory_));
}

TEST_F(MemoryImagesTest, AreNotChosenWithoutRoom) {
  const Result<std::string> chosen = choose_memory_images(name_, 1UL << 50U, disk_);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, Code::resource_exhausted);
  EXPECT_NE(chosen.error().message.find("the images may need"), std::string::npos)
      << chosen.error().message;
}

}  // namespace
}  // namespace kymo::runtime
