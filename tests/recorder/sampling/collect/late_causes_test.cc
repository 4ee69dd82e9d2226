#include "recorder/sampling/collect/late_causes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

constexpr std::uint64_t kOneMillisecondNs = 1'000'000;

// The test sets the figures of the kernel. The interval is one millisecond.
class LateCausesTest : public ::testing::Test {
 protected:
  LateCausesTest() {
    kernel_use = {1, 1, true};
    kernel_stolen_ns = 0;
    causes_.begin();
  }
  // Adds these to the counts, and lets LateCauses look at them.
  void look(std::uint64_t rows, std::uint64_t late, std::uint64_t waited_ms) {
    counts_.collected.captured.add(rows);
    counts_.collected.missed_late.add(late);
    kernel_use.waited_ns += waited_ms * kOneMillisecondNs;
    causes_.look();
  }
  [[nodiscard]] ProfilerStats stats() const { return counts_.snapshot(); }

  static inline LateCauses::Use kernel_use;
  static inline std::uint64_t kernel_stolen_ns = 0;
  RecorderCounts counts_;
  LateCauses causes_{kOneMillisecondNs,
                     counts_.collected,
                     counts_.written,
                     {[](pid_t) { return kernel_use; }, [] { return kernel_stolen_ns; }}};
};

TEST_F(LateCausesTest, TicksForWhichTheThreadWaitedForACpuAreSaid) {
  look(470, 30, 30);
  EXPECT_EQ(stats().late_waited, 30U);
  look(480, 20, 5);
  EXPECT_EQ(stats().late_waited, 35U) << "the wait explains only 5 of the 20 late ticks";
  EXPECT_EQ(stats().late_sample + stats().late_stolen + stats().late_page_fault, 0U);
}

TEST_F(LateCausesTest, TheUsualWaitAfterASleepIsNotACause) {
  look(500, 0, 25);  // a wait of 50 us for each row
  look(500, 0, 25);
  look(490, 10, 25);
  EXPECT_EQ(stats().late_waited, 1U)
      << "there are 10 rows less with the usual wait, which explains one late tick";
  look(480, 20, 44);
  EXPECT_EQ(stats().late_waited, 21U);
}

TEST_F(LateCausesTest, WhatIsNotKnownYetIsAtMostHowLateTheRowsWere) {
  counts_.collected.timing_error_ns.add(25 * kOneMillisecondNs);
  look(490, 10, 25);
  EXPECT_EQ(stats().late_waited, 0U);
}

TEST_F(LateCausesTest, LongSamplesStolenTimeAndPageFaultsAreSaidInThisOrder) {
  counts_.collected.late_sample.add(8);
  kernel_stolen_ns += 4 * kOneMillisecondNs;
  ++kernel_use.page_faults;
  look(400, 20, 3);
  EXPECT_EQ(stats().late_waited, 3U);
  EXPECT_EQ(stats().late_sample, 8U);
  EXPECT_EQ(stats().late_stolen, 4U);
  EXPECT_EQ(stats().late_page_fault, 5U);
}

TEST_F(LateCausesTest, ALookBeforeTheBeginExplainsNothing) {
  kernel_stolen_ns += 100 * kOneMillisecondNs;
  counts_.collected.missed_late.add(5);
  LateCauses early{kOneMillisecondNs,
                   counts_.collected,
                   counts_.written,
                   {[](pid_t) { return kernel_use; }, [] { return kernel_stolen_ns; }}};
  early.look();
  EXPECT_EQ(stats().late_stolen, 0U);
}

TEST_F(LateCausesTest, NoMoreTicksAreExplainedThanWereLate) {
  counts_.collected.late_sample.add(8);
  kernel_stolen_ns += 100 * kOneMillisecondNs;
  look(400, 5, 100);
  EXPECT_EQ(stats().late_waited, 5U);
  EXPECT_EQ(stats().late_sample + stats().late_stolen, 0U);
}

// The thread of a restored process has new counts that begin at 0.
TEST_F(LateCausesTest, CountsThatGoBackExplainNothing) {
  look(400, 0, 500);
  kernel_use.waited_ns = 0;
  look(400, 5, 0);
  EXPECT_EQ(stats().late_waited, 0U);
  kernel_use.known = false;
  look(400, 5, 100);
  EXPECT_EQ(stats().late_waited, 0U);
}

TEST_F(LateCausesTest, TheLastTicksAreJudgedByWhatTheThreadLeft) {
  kernel_use.waited_ns += 7 * kOneMillisecondNs;
  causes_.end();
  kernel_use = {};  // the thread has ended
  counts_.collected.missed_late.add(7);
  causes_.finish();
  EXPECT_EQ(stats().late_waited, 7U);
}

TEST(LateCauses, ReadsWhatThisKernelCounts) {
  const LateCauses::Use use = LateCauses::kSystem.use(::gettid());
  if (!use.known) {
    GTEST_SKIP() << "no schedstat here";
  }
  const std::uint64_t stolen_ns = LateCauses::kSystem.stolen_ns();
  EXPECT_GE(LateCauses::kSystem.use(::gettid()).waited_ns, use.waited_ns);
  EXPECT_GE(LateCauses::kSystem.stolen_ns(), stolen_ns);
  EXPECT_FALSE(LateCauses::kSystem.use(0x7fffffff).known);
}

// A callback takes three milliseconds, at a rate of one kilohertz.
TEST(LateCauses, ASlowCallbackIsASampleThatTookTooLong) {
  Registry registry;
  ASSERT_TRUE(registry.callback({"slow", "help", Kind::gauge, Unit::count, {}}, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return 1U;
  }));
  ProfilerOptions options;
  options.sink = std::make_shared<KeepingSink>();
  Profiler profiler(registry, options);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().missed_late < 40) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(profiler.stop());
  const ProfilerStats stats = profiler.stats();
  EXPECT_GT(stats.late_sample, 0U);
  EXPECT_LE(stats.late_waited + stats.late_sample + stats.late_stolen + stats.late_page_fault,
            stats.missed_late);
}

}  // namespace
}  // namespace kymo
