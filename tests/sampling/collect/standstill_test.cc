#include "sampling/collect/standstill.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMilliNs = 1'000'000;
constexpr std::uint64_t kHour = 3'600'000 * kMilliNs;

class StandstillTest : public ::testing::Test {
 protected:
  void SetUp() override { standstill_.note(begin_ns_); }
  std::uint64_t late_ns() const { return monotonic_ns() - begin_ns_; }

  const std::uint64_t begin_ns_ = monotonic_ns();
  Standstill standstill_{kMilliNs};
};

TEST_F(StandstillTest, AThreadThatDidNotWantToRunStoodStill) {
  // What stands for being frozen, unless the thread then waits for a processor.
  Standstill standstill{kMilliNs};
  std::uint64_t began_ns = 0;
  do {
    began_ns = monotonic_ns();
    standstill.note(began_ns);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (monotonic_ns() - began_ns > 120 * kMilliNs);
  const std::uint64_t now_ns = monotonic_ns();
  const Standstill::Verdict verdict = standstill.judge(now_ns, now_ns - began_ns);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_FALSE(verdict.restored);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

TEST_F(StandstillTest, AThreadThatRanWasMerelyLate) {
  while (late_ns() < 100 * kMilliNs) {
  }
  const Standstill::Verdict verdict = standstill_.judge(monotonic_ns(), late_ns());
  EXPECT_FALSE(verdict.frozen);
  EXPECT_FALSE(verdict.restored);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

// As after a restore on a machine that was started later: the wall clock says that no time passed.
TEST_F(StandstillTest, AClockThatWentBackAnHourIsMadeUpForByTheWallClock) {
  const Standstill::Verdict verdict = standstill_.judge(begin_ns_ - kHour, 0);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_NEAR(static_cast<double>(verdict.clock_shift_ns), -static_cast<double>(kHour), 1e9);
}

TEST_F(StandstillTest, AClockThatWentBackLessThanClocksMayDisagreeIsBelieved) {
  const Standstill::Verdict verdict = standstill_.judge(begin_ns_ - 10 * kMilliNs, 0);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

TEST_F(StandstillTest, ClocksThatPartedAreSeenOnce) {
  EXPECT_FALSE(standstill_.clocks_diverged(monotonic_ns()));
  for (const std::uint64_t another : {begin_ns_ - kHour, begin_ns_ + kHour}) {
    EXPECT_TRUE(standstill_.clocks_diverged(another + late_ns()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(standstill_.clocks_diverged(another + late_ns()));
  }
}

TEST_F(StandstillTest, JudgingNotesAnew) {
  static_cast<void>(standstill_.judge(begin_ns_ - kHour, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const Standstill::Verdict verdict =
      standstill_.judge(begin_ns_ - kHour + late_ns(), 60 * kMilliNs);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_EQ(verdict.clock_shift_ns, 0) << "the clock that went back is the one that counts now";
}

}  // namespace
}  // namespace kymo
