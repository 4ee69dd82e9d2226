#include "daemon/request/room.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kOneMebibyte = std::uint64_t{1} << 20U;

store::Run dumped(std::uint64_t pages, std::uint64_t image_bytes, const std::string& conditions) {
  store::Run run;
  run.stats_json = R"({"pages_written":)" + std::to_string(pages) + "}";
  run.image_bytes = image_bytes;
  run.conditions = conditions;
  return run;
}

class RoomTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=8m") != 0) {
      GTEST_SKIP() << "mounting needs root";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool refused(std::uint64_t mib, bool compressed = false, double share = 0) const {
    return !check_room(folder_.path() + "/checkpoints/new",
                       {mib * kOneMebibyte, compressed, share, true});
  }

  test::TemporaryDirectory folder_;
  bool mounted_ = false;
};

TEST_F(RoomTest, WhatClearlyHasNoRoomIsRefusedWithFigures) {
  EXPECT_FALSE(refused(7));
  EXPECT_FALSE(refused(8)) << "the process may give some memory back until it is dumped";
  EXPECT_TRUE(refused(10));
  const Result<void> result = check_room(folder_.path() + "/c", {.bytes = 64 * kOneMebibyte});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::resource_exhausted);
  EXPECT_NE(result.error().message.find("there is no room for its images: about 64 MiB are needed "
                                        "in " +
                                        folder_.path() + "/c, and its disk has 8 MiB free"),
            std::string::npos)
      << result.error().message;
  EXPECT_NE(result.error().message.find("--compression zstd"), std::string::npos);
  // Before, the option was advised without this. Then the dump was refused because the two exclude each other.
  const Result<void> with_rounds = check_room(
      folder_.path() + "/c", {.bytes = 64 * kOneMebibyte, .uncompressed_by = "--pre-dump"});
  ASSERT_FALSE(with_rounds);
  EXPECT_NE(with_rounds.error().message.find("(--compression zstd, without --pre-dump)"),
            std::string::npos)
      << with_rounds.error().message;
  // A dump of a container cannot be compressed.
  const Result<void> container =
      check_room(folder_.path() + "/c", {.bytes = 64 * kOneMebibyte, .can_compress = false});
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().message.find("--compression"), std::string::npos);
}

// zstd was advised, although earlier dumps of the process had saved 2 % with it.
TEST_F(RoomTest, CompressionIsAdvisedOnlyIfItsImagesWouldHaveRoom) {
  const auto advised = [&](double share) {
    const Result<void> result =
        check_room(folder_.path() + "/c", {.bytes = 64 * kOneMebibyte, .least_share = share});
    return !result && result.error().message.find("--compression") != std::string::npos;
  };
  EXPECT_TRUE(advised(0)) << "nothing is known of it";
  EXPECT_TRUE(advised(0.12));
  EXPECT_FALSE(advised(0.13));
  EXPECT_FALSE(advised(0.98));
}

TEST_F(RoomTest, AFullFolderCountsWithWhatIsLeft) {
  std::ofstream(folder_.path() + "/filling") << std::string(6 * kOneMebibyte, 'x');
  EXPECT_TRUE(refused(4));
  EXPECT_FALSE(refused(1));
}

TEST_F(RoomTest, ADiskWithoutFreeInodesHasNoRoomForFiles) {
  ASSERT_EQ(::mount("none", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=8m,nr_inodes=32"),
            0);
  EXPECT_FALSE(refused(1));
  for (int i = 0; i < 27; ++i) std::ofstream(folder_.path() + "/" + std::to_string(i));
  const Result<void> result = check_room(folder_.path() + "/c", {kOneMebibyte});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::resource_exhausted);
  EXPECT_NE(result.error().message.find(
                folder_.path() + "/c needs an inode, and its disk has 4 free inodes (df -i)"),
            std::string::npos)
      << result.error().message;
}

TEST_F(RoomTest, CompressedImagesAreJudgedByEarlierOnes) {
  EXPECT_FALSE(refused(1000, true)) << "they may be zeros";
  EXPECT_TRUE(refused(400'000, true)) << "not even zeros have room";
  EXPECT_TRUE(refused(1000, true, 0.5));
  EXPECT_FALSE(refused(15, true, 0.9));
  EXPECT_FALSE(refused(1000, true, 0.01));
}

TEST(RoomShareTest, TheSmallestOfComparableDumpsCounts) {
  const std::vector<store::Run> earlier{
      dumped(100, 409'600, "stream zstd"), dumped(100, 102'400, "leave running, stream zstd"),
      dumped(100, 1, "stream lz4"), dumped(0, 1, "stream zstd"), dumped(100, 2, "")};
  EXPECT_DOUBLE_EQ(least_share_of(earlier, "zstd"), 0.25);
  EXPECT_DOUBLE_EQ(least_share_of({}, "zstd"), 0);
  store::Run shared = dumped(10, 204'800, "stream zstd");
  shared.stats_json = R"({"pages_written": 10, "shpages_written": 90})";
  EXPECT_DOUBLE_EQ(least_share_of({shared}, "zstd"), 0.5);
}

TEST(RoomShareTest, TheStandstillsWithAndWithoutCompressionAreMedians) {
  const auto still = [](std::uint64_t ns, const char* conditions) {
    store::Run run = dumped(100, 1, conditions);
    run.stood_still_ns = ns;
    return run;
  };
  store::Run failed = still(99, "stream zstd");
  failed.error = "no";
  const std::vector<store::Run> earlier{still(5, "stream zstd"),
                                        still(9, "leave running, stream zstd"),
                                        still(7, "stream zstd level 12"),
                                        failed,
                                        still(1, "stream lz4"),
                                        still(3, "leave running"),
                                        still(0, "")};
  EXPECT_EQ(standstill_of(earlier, "zstd"), 7U);
  EXPECT_EQ(standstill_of(earlier, ""), 3U);
  EXPECT_EQ(standstill_of({}, ""), 0U);
}

TEST(RoomShareTest, OnlyDumpsOfThisDiskAndOfAboutThisSizeAreCompared) {
  const auto onto = [](const char* disk, std::uint64_t pages) {
    store::Run run = dumped(pages, 1, "");
    run.disk = disk;
    return run;
  };
  const std::vector<store::Run> found =
      alike({onto("/a", 100), onto("/b", 100), onto("/a", 49), onto("/a", 50), onto("/a", 200),
             onto("/a", 201), onto("/a", 0)},
            "/a", 100 * 4096);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].stats_json, onto("/a", 50).stats_json);
  EXPECT_EQ(found[2].stats_json, onto("/a", 200).stats_json);
}

// Nothing is known of such a file system.
TEST(RoomShareTest, AFileSystemThatDoesNotKnowItsSizeRefusesNothing) {
  EXPECT_TRUE(check_room("/proc/none", {std::uint64_t{1} << 60U}).ok());
}

}  // namespace
}  // namespace kymo::daemon
