#include "base/proc/directory_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::probe {
namespace {

// The totals that a watcher has reported so far.
class Totals {
 public:
  DirectoryBytesWatcher::Report report() {
    return [this](std::uint64_t total) {
      const std::lock_guard lock(mutex_);
      totals_.push_back(total);
    };
  }
  std::vector<std::uint64_t> all() {
    const std::lock_guard lock(mutex_);
    return totals_;
  }
  std::uint64_t last() {
    const std::lock_guard lock(mutex_);
    return totals_.empty() ? 0 : totals_.back();
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> totals_;
};

void append(const std::string& path, std::size_t bytes) {
  std::ofstream(path, std::ios::app | std::ios::binary) << std::string(bytes, 'x');
}

TEST(DirectoryBytesTest, SumsRegularFilesOnly) {
  const test::TemporaryDirectory folder;
  append(folder.path() + "/a", 1000);
  append(folder.path() + "/b", 24);
  append(folder.folder("below") + "/c", 5000);
  std::filesystem::create_symlink(folder.path() + "/a", folder.path() + "/link");
  const Result<std::uint64_t> bytes = directory_bytes(folder.path());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, 1024U);
  EXPECT_EQ(directory_bytes(folder.path() + "/missing").error().code, Code::not_found);
}

TEST(DirectoryBytesTest, FollowsGrowthAndNewFiles) {
  const test::TemporaryDirectory folder;
  Totals totals;
  auto watcher = DirectoryBytesWatcher::start(folder.path(), totals.report());
  ASSERT_TRUE(watcher.ok());
  std::uint64_t sum = 0;
  for (int step = 0; step < 20; ++step) {
    append(folder.path() + "/file" + std::to_string(step % 5), 100);
    sum += 100;
    ASSERT_TRUE(test::eventually([&] { return totals.last() == sum; })) << step;
  }
  EXPECT_EQ((*watcher)->finish(), sum);
  const std::vector<std::uint64_t> all = totals.all();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(all.back(), sum);
}

TEST(DirectoryBytesTest, TheTotalNeverDecreases) {
  const test::TemporaryDirectory folder;
  Totals totals;
  append(folder.path() + "/a", 1000);
  auto watcher = DirectoryBytesWatcher::start(folder.path(), totals.report());
  ASSERT_TRUE(watcher.ok());
  ASSERT_TRUE(test::eventually([&] { return totals.last() == 1000; }));
  std::filesystem::remove(folder.path() + "/a");
  EXPECT_EQ((*watcher)->finish(), 1000U);
}

TEST(DirectoryBytesTest, FinishIsExactHoweverShortTheWatch) {
  const test::TemporaryDirectory folder;
  Totals totals;
  auto watcher =
      DirectoryBytesWatcher::start(folder.path(), totals.report(), std::chrono::hours(1));
  ASSERT_TRUE(watcher.ok());
  append(folder.path() + "/a", 77);
  EXPECT_EQ((*watcher)->finish(), 77U);
  EXPECT_EQ((*watcher)->finish(), 77U) << "a second finish must be harmless";
  EXPECT_EQ(totals.all(), (std::vector<std::uint64_t>{77}));
}

TEST(DirectoryBytesTest, NamesAFolderThatIsNotThere) {
  const test::TemporaryDirectory folder;
  const std::string missing = folder.path() + "/missing";
  const auto watcher = DirectoryBytesWatcher::start(missing, [](std::uint64_t) {});
  ASSERT_FALSE(watcher.ok());
  EXPECT_NE(watcher.error().message.find(missing), std::string::npos);
}

TEST(DirectoryBytesTest, TellsThePagesApart) {
  const test::TemporaryDirectory folder;
  std::uint64_t total = 0;
  std::uint64_t pages = 0;
  auto watcher = DirectoryBytesWatcher::start(
      folder.path(), [](std::uint64_t) {}, std::chrono::milliseconds(1),
      [&](std::uint64_t all, std::uint64_t of_pages) {
        total = all;
        pages = of_pages;
      });
  ASSERT_TRUE(watcher.ok());
  append(folder.path() + "/pages-1.img", 4096);
  append(folder.path() + "/core-1.img", 100);
  append(folder.path() + "/pages-2.img", 8192);
  (*watcher)->finish();
  EXPECT_EQ(total, 12'388U);
  EXPECT_EQ(pages, 12'288U);
}

}  // namespace
}  // namespace kymo::probe
