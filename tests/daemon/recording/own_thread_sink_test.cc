#include "daemon/recording/own_thread_sink.h"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kTickNs = 1'000'000;

// A sink on a simulated disk that stalls or fails on request.
class DiskSink : public Sink {
 public:
  Result<void> open(const RecordingInfo&) override { return {}; }
  Result<void> write(const Rows& given) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !stalls_; });
    if (fails_) return Error{Code::resource_exhausted, "disk full"};
    for (std::size_t i = 0; i < given.count; ++i) times_.push_back(given.row(i)[0]);
    return {};
  }
  void gap(const Gap& gap) override {
    const std::lock_guard lock(mutex_);
    gaps_.push_back(gap);
  }
  void progress(const ProfilerStats&) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !stalls_; });
  }
  Result<void> close(const ProfilerStats& stats) override {
    const std::lock_guard lock(mutex_);
    closed_ = stats;
    return {};
  }
  [[nodiscard]] OutputPlace output_place() const override { return {"/disk/log.tsv"}; }
  [[nodiscard]] LostRows lost_rows() const override { return {3, "log.tsv was removed"}; }

  void be(bool stalls, bool fails = false) {
    const std::lock_guard lock(mutex_);
    stalls_ = stalls;
    fails_ = fails;
    changed_.notify_all();
  }
  std::vector<std::uint64_t> times() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  std::vector<Gap> gaps() const {
    const std::lock_guard lock(mutex_);
    return gaps_;
  }
  std::optional<ProfilerStats> closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stalls_ = false;
  bool fails_ = false;
  std::vector<std::uint64_t> times_;
  std::vector<Gap> gaps_;
  std::optional<ProfilerStats> closed_;
};

struct OwnThreadSinkTest : testing::Test {
  OwnThreadSinkTest() {
    RecordingInfo info;
    info.interval = std::chrono::nanoseconds(kTickNs);
    EXPECT_TRUE(sink.open(info).ok());
  }
  // Writes a row with the time of this tick.
  Result<void> write(std::uint64_t tick) {
    const std::array<std::uint64_t, 2> row{tick * kTickNs, 7};
    return sink.write({row.data(), 1, row.size()});
  }

  std::shared_ptr<DiskSink> disk = std::make_shared<DiskSink>();
  OwnThreadSink sink{disk};
};

TEST_F(OwnThreadSinkTest, WhileTheDiskAnswersAWriteHasItsResult) {
  EXPECT_TRUE(write(1).ok());
  EXPECT_EQ(disk->times(), std::vector<std::uint64_t>{kTickNs});
  disk->be(false, true);
  EXPECT_EQ(write(2).error().message, "disk full");
  disk->be(false);
  EXPECT_TRUE(write(3).ok());
  ProfilerStats stats;
  stats.rows_written = 2;
  stats.missed_sink_error = 1;
  EXPECT_TRUE(sink.close(stats).ok());
  EXPECT_EQ(disk->times().size(), 2U);
  EXPECT_EQ(disk->closed()->rows_written, 2U);
  EXPECT_EQ(disk->closed()->missed_sink_error, 1U)
      << "the caller has already counted the refused row";
}

TEST_F(OwnThreadSinkTest, WhatTheOtherSinkHasLostIsSaid) {
  EXPECT_TRUE(sink.lost_rows().text.empty()) << "it was not asked yet";
  sink.progress({});
  while (sink.lost_rows().text.empty()) std::this_thread::yield();
  EXPECT_EQ(sink.lost_rows().rows, 3U);
  EXPECT_EQ(sink.lost_rows().text, "log.tsv was removed");
}

TEST_F(OwnThreadSinkTest, RowsWaitInOrderForADiskThatStalls) {
  disk->be(true);
  sink.progress({});
  std::vector<std::uint64_t> expected;
  for (std::uint64_t tick = 1; tick <= 1000; ++tick) {
    ASSERT_TRUE(write(tick).ok()) << "write() must not wait for the disk";
    expected.push_back(tick * kTickNs);
  }
  sink.gap({1000 * kTickNs, 1003 * kTickNs, 3, MissCause::late});
  disk->be(false);
  EXPECT_TRUE(sink.close({}).ok());
  EXPECT_EQ(disk->times(), expected);
  ASSERT_EQ(disk->gaps().size(), 1U);
  EXPECT_EQ(disk->gaps()[0].ticks, 3U);
  EXPECT_TRUE(disk->closed());
}

TEST_F(OwnThreadSinkTest, WhatIsRefusedTooLateIsAGapAndMissedAndSaid) {
  disk->be(true);
  EXPECT_TRUE(write(5).ok());
  disk->be(false, true);
  ProfilerStats stats;
  stats.rows_written = 10;
  const Result<void> closed = sink.close(stats);
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, Code::data_loss);
  EXPECT_EQ(closed.error().message,
            "1 row that waited for the disk of /disk/log.tsv could not be kept (disk full)");
  EXPECT_EQ(disk->closed()->rows_written, 9U);
  EXPECT_EQ(disk->closed()->missed_sink_error, 1U);
  ASSERT_EQ(disk->gaps().size(), 1U);
  EXPECT_EQ(disk->gaps()[0].start_ns, 5 * kTickNs);
  EXPECT_EQ(disk->gaps()[0].end_ns, 6 * kTickNs);
  EXPECT_EQ(disk->gaps()[0].cause, MissCause::sink_error);
}

TEST_F(OwnThreadSinkTest, WhatDoesNotFitIntoMemoryIsRefused) {
  disk->be(true);
  const std::vector<std::uint64_t> rows(std::size_t{1} << 18);  // 2 MiB
  int accepted = 0;
  Result<void> refused;
  while ((refused = sink.write({rows.data(), rows.size(), 1}))) ++accepted;
  EXPECT_EQ(accepted, 4);
  EXPECT_EQ(refused.error().message, "the disk of /disk/log.tsv does not answer");
  disk->be(false);
  EXPECT_TRUE(sink.close({}).ok());
}

TEST_F(OwnThreadSinkTest, ADiskThatStallsAtTheEndIsSaidAndLeft) {
  disk->be(true);
  EXPECT_TRUE(write(1).ok());
  const Result<void> closed = sink.close({});
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, Code::deadline_exceeded);
  EXPECT_FALSE(disk->closed());
  disk->be(false);  // lets the thread of the sink end
}

}  // namespace
}  // namespace kymo::daemon
