#include "daemon/request/progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kOneSecond = 1'000'000'000;

TEST(RateMeterTest, IsTheGrowthOfTheLastSecond) {
  RateMeter meter;
  EXPECT_EQ(meter.per_second(5 * kOneSecond, 100), 0U);
  for (std::uint64_t ms = 0; ms <= 3000; ms += 10)
    meter.note(kOneSecond + ms * 1'000'000, ms * 1000);
  EXPECT_NEAR(static_cast<double>(meter.per_second(4 * kOneSecond, 3'000'000)), 1e6, 1e3);
  // From now on the dump is ten times as fast. After more than a second, only the new rate counts.
  for (std::uint64_t ms = 0; ms <= 1300; ms += 10) {
    meter.note(4 * kOneSecond + ms * 1'000'000, 3'000'000 + ms * 10'000);
  }
  EXPECT_NEAR(static_cast<double>(meter.per_second(5 * kOneSecond + 300'000'000, 16'000'000)), 1e7,
              1e5);
}

TEST(RateMeterTest, AStandstillIsSeen) {
  RateMeter meter;
  for (std::uint64_t ms = 0; ms <= 500; ms += 10) meter.note(ms * 1'000'000, ms * 1000);
  EXPECT_GT(meter.per_second(kOneSecond, 500'000), 0U);
  EXPECT_EQ(meter.per_second(10 * kOneSecond, 500'000), 0U);
  // The last step came too soon after the one before to be kept.
  meter.note(510'000'000, 900'000);
  EXPECT_EQ(meter.per_second(10 * kOneSecond, 900'000), 0U);
}

class ProgressTest : public testing::Test {
 protected:
  ProgressSums sums_;
  ProgressBoard board_{sums_};
};

// "unfreeze, 100 %, 0.0 s left", for 13 s in which the images were made durable and the process stood still.
TEST_F(ProgressTest, WhatKymodDoesBeforeItAnswersIsThePhaseAndItsEndIsUnknown) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->expect(4096);
  dump->moved(4096, 4096, v1::Progress::STREAM);
  dump->notified("post-dump");
  EXPECT_EQ(dump->view().phase(), "memory") << "its answer waits until all images are written";
  dump->working("sync");
  EXPECT_EQ(dump->view().phase(), "sync");
  EXPECT_FALSE(dump->view(monotonic_ns() + kOneSecond).has_remaining_ns());
  dump->working("");
  dump->answered();
  EXPECT_EQ(dump->view().phase(), "unfreeze");
}

// `kymo cancel web` of a container said that no dump of it is running.
TEST_F(ProgressTest, ARequestIsFoundByEachNameOfItsTarget) {
  const auto dump = board_.begin(v1::Progress::DUMP, "first").value();
  const auto other = board_.begin(v1::Progress::RESTORE, "").value();
  dump->set_target(7, "");
  dump->set_container("0123abcd", "web");
  for (const char* target : {"first", "7", "0123abcd", "web"}) {
    EXPECT_EQ(board_.running_of(target), (std::vector{dump})) << target;
  }
  EXPECT_TRUE(board_.running_of("").empty());
  EXPECT_TRUE(board_.running_of("0").empty());
  board_.end(dump, {});
  EXPECT_TRUE(board_.running_of("web").empty());
}

TEST_F(ProgressTest, TheEndIsUnknownUntilATenthIsDone) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  EXPECT_FALSE(dump->view().has_bytes_total());
  EXPECT_FALSE(dump->view().has_remaining_ns());
  dump->expect(1'000'000);
  dump->moved(1000, 0, v1::Progress::PASSIVE);
  // A rate needs some time between two readings.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  dump->moved(99'999, 90'000, v1::Progress::PASSIVE);
  v1::Progress view = dump->view();
  EXPECT_EQ(view.bytes_remaining(), 900'001U);
  EXPECT_FALSE(view.has_remaining_ns());
  dump->moved(100'000, 90'000, v1::Progress::PASSIVE);
  view = dump->view();
  EXPECT_GT(view.bytes_per_second(), 0U);
  ASSERT_TRUE(view.has_remaining_ns());
  EXPECT_EQ(view.remaining_ns(),
            static_cast<std::uint64_t>(9e5 / static_cast<double>(view.bytes_per_second()) * 1e9));
  EXPECT_EQ(
      view.estimated_end_unix_ns(),
      view.started_unix_ns() + static_cast<std::int64_t>(view.elapsed_ns() + view.remaining_ns()));
  EXPECT_EQ(view.pages_done(), 90'000U / 4096);
}

TEST_F(ProgressTest, MoreThanWasExpectedIsTheTotalThen) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  dump->expect(1000);
  dump->moved(1500, 0, v1::Progress::PASSIVE);
  EXPECT_EQ(dump->view().bytes_total(), 1500U);
  EXPECT_EQ(dump->view().bytes_remaining(), 0U);
  EXPECT_EQ(sums_.bytes_remaining, 0U);
  dump->moved(1400, 0, v1::Progress::PASSIVE);  // an older reading must not decrease the progress
  EXPECT_EQ(dump->view().bytes_done(), 1500U);
}

TEST_F(ProgressTest, ThePhaseFollowsWhatCriuPassesAndTheFirstPage) {
  const auto dump = board_.begin(v1::Progress::DUMP, "").value();
  const auto phase = [&] { return dump->view().phase(); };
  EXPECT_EQ(phase(), "prepare");
  dump->notified("pre-dump");
  EXPECT_EQ(phase(), "freeze");
  dump->notified("query-ext-files");
  EXPECT_EQ(phase(), "freeze");
  dump->moved(44, 0, v1::Progress::PASSIVE);
  EXPECT_EQ(phase(), "collect");
  dump->moved(5000, 4096, v1::Progress::PASSIVE);
  EXPECT_EQ(phase(), "memory");
  dump->notified("post-dump");
  dump->answered();
  EXPECT_EQ(phase(), "unfreeze");
  dump->finishing();
  EXPECT_EQ(phase(), "finish");
  const auto restore = board_.begin(v1::Progress::RESTORE, "").value();
  restore->notified("pre-restore");
  EXPECT_EQ(restore->view().phase(), "processes");
  restore->moved(4096, 4096, v1::Progress::PASSIVE);
  EXPECT_EQ(restore->view().phase(), "memory");
  restore->notified("post-restore");
  EXPECT_EQ(restore->view().phase(), "resume");
}

TEST_F(ProgressTest, TheSumsAreThoseOfTheRequestsThatRun) {
  const auto one = board_.begin(v1::Progress::DUMP, "one").value();
  const auto two = board_.begin(v1::Progress::DUMP, "two").value();
  one->expect(10'000);
  one->moved(8192, 8192, v1::Progress::PASSIVE);
  two->expect(5000);
  EXPECT_EQ(sums_.bytes_done, 8192U);
  EXPECT_EQ(sums_.bytes_remaining, 10'000U - 8192U + 5000U);
  EXPECT_EQ(sums_.pages_done, 2U);
  board_.end(one, {});
  EXPECT_EQ(sums_.bytes_done, 0U);
  EXPECT_EQ(sums_.bytes_remaining, 5000U);
  board_.end(two, Error{Code::internal, "broken"});
  EXPECT_EQ(sums_.bytes_remaining, 0U);
  EXPECT_EQ(two->view().state(), v1::Progress::FAILED);
  EXPECT_EQ(two->view().error(), "broken");
  EXPECT_EQ(one->view().bytes_total(), 8192U);  // at the end, the total is what was done
}

TEST_F(ProgressTest, AnIdIsUniqueAmongThoseThatRunAndNotTooLong) {
  const auto one = board_.begin(v1::Progress::DUMP, "one").value();
  EXPECT_EQ(board_.begin(v1::Progress::DUMP, "one").error().code, Code::already_exists);
  EXPECT_EQ(board_.begin(v1::Progress::DUMP, std::string(65, 'x')).error().code,
            Code::invalid_argument);
  board_.end(one, {});
  EXPECT_TRUE(board_.begin(v1::Progress::DUMP, "one").ok());
  EXPECT_NE(board_.begin(v1::Progress::DUMP, "").value()->id(),
            board_.begin(v1::Progress::DUMP, "").value()->id());
}

}  // namespace
}  // namespace kymo::daemon
