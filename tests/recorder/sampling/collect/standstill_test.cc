#include "recorder/sampling/collect/standstill.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMilliNs = 1'000'000;
constexpr std::uint64_t kHour = 3'600'000 * kMilliNs;

// A simulated machine with two CPUs. The test sets its clocks and counts.
struct Machine {
  static void become_new() {
    use = {1, 1, true};
    process_cpu_ns = 1;
    process_start = 7;
    unix_ns = 1'700'000'000'000'000'000;
  }
  // Lets time pass on the wall clock. The thread runs, or waits for a CPU, for a part of it, and
  // other threads of the process run.
  static void pass(std::uint64_t time_ns, std::uint64_t ran_ns = 0, std::uint64_t waited_ns = 0,
                   std::uint64_t others_ran_ns = 0) {
    process_cpu_ns += ran_ns + others_ran_ns;
    unix_ns += static_cast<std::int64_t>(time_ns);
    use.ran_ns += ran_ns;
    use.waited_ns += waited_ns;
  }
  static Standstill::Source source() {
    return {[] { return use; }, [] { return process_cpu_ns; }, [] { return std::uint64_t{2}; },
            [] { return process_start; }, [] { return unix_ns; }};
  }

  static inline Standstill::Use use;
  static inline std::uint64_t process_cpu_ns = 0;
  static inline std::uint64_t process_start = 0;
  static inline std::int64_t unix_ns = 0;
};

class StandstillTest : public ::testing::Test {
 protected:
  StandstillTest() {
    Machine::become_new();
    standstill_.note(kBeginNs);
  }

  static constexpr std::uint64_t kBeginNs = 2 * kHour;
  Standstill standstill_{kMilliNs, Machine::source()};
};

TEST_F(StandstillTest, AThreadThatDidNotWantToRunStoodStill) {
  Machine::pass(100 * kMilliNs);
  const Standstill::Verdict verdict = standstill_.judge(kBeginNs + 100 * kMilliNs, 100 * kMilliNs);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_FALSE(verdict.restored);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

TEST_F(StandstillTest, AThreadThatRanOrWaitedForACpuWasMerelyLate) {
  Machine::pass(100 * kMilliNs, 60 * kMilliNs, 0);
  EXPECT_FALSE(standstill_.judge(kBeginNs + 100 * kMilliNs, 100 * kMilliNs).frozen);
  Machine::pass(100 * kMilliNs, 0, 60 * kMilliNs);
  EXPECT_FALSE(standstill_.judge(kBeginNs + 200 * kMilliNs, 100 * kMilliNs).frozen);
}

// Only the collector's thread was looked at. Its CPU was paused, and the program's threads went on on another.
TEST_F(StandstillTest, AProgramWhoseOtherThreadsRanDidNotStandStill) {
  for (const std::uint64_t percent : {41U, 91U, 200U}) {
    Machine::become_new();
    Standstill standstill{kMilliNs, Machine::source()};
    standstill.note(kBeginNs);
    Machine::pass(100 * kMilliNs, 0, 0, percent * kMilliNs);
    EXPECT_FALSE(standstill.judge(kBeginNs + 100 * kMilliNs, 100 * kMilliNs).frozen) << percent;
  }
}

TEST_F(StandstillTest, WhatCriusCodeUsesInAProcessIsLittle) {
  Machine::pass(100 * kMilliNs, 0, 0, 20 * kMilliNs);
  EXPECT_TRUE(standstill_.judge(kBeginNs + 100 * kMilliNs, 100 * kMilliNs).frozen);
}

TEST_F(StandstillTest, WhatAProgramUsedBeforeItStoodStillDoesNotCount) {
  std::uint64_t now_ns = kBeginNs;
  for (int i = 0; i < 100; ++i) {  // both CPUs are busy
    Machine::pass(kMilliNs, 0, 0, 2 * kMilliNs);
    now_ns += kMilliNs;
    standstill_.note(now_ns);
  }
  Machine::pass(4 * kMilliNs, 0, 0, 8 * kMilliNs);
  Machine::pass(40 * kMilliNs);
  now_ns += 44 * kMilliNs;
  EXPECT_TRUE(standstill_.judge(now_ns, 40 * kMilliNs).frozen);
  Machine::pass(4 * kMilliNs, 0, 0, 8 * kMilliNs);
  Machine::pass(40 * kMilliNs, 0, 0, 20 * kMilliNs);
  now_ns += 44 * kMilliNs;
  EXPECT_FALSE(standstill_.judge(now_ns, 40 * kMilliNs).frozen);
}

TEST(StandstillOfThisThreadTest, AThreadThatRanWasMerelyLate) {
  Standstill standstill{kMilliNs};
  const std::uint64_t begin_ns = monotonic_ns();
  standstill.note(begin_ns);
  while (monotonic_ns() - begin_ns < 100 * kMilliNs) {
  }
  const std::uint64_t now_ns = monotonic_ns();
  const Standstill::Verdict verdict = standstill.judge(now_ns, now_ns - begin_ns);
  EXPECT_FALSE(verdict.frozen);
  EXPECT_FALSE(verdict.restored);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

TEST_F(StandstillTest, AnotherProcessAndAThreadThatRanLessAreRestored) {
  Machine::process_start = 8;
  EXPECT_TRUE(standstill_.judge(kBeginNs + kMilliNs, 0).restored);
  EXPECT_FALSE(standstill_.judge(kBeginNs + 2 * kMilliNs, 0).restored);
  Machine::use.ran_ns = 0;
  EXPECT_TRUE(standstill_.judge(kBeginNs + 3 * kMilliNs, 0).restored);
}

// As after a restore on a machine that was started an hour later: only the wall clock shows how
// much time passed.
TEST_F(StandstillTest, AClockThatWentBackAnHourIsMadeUpForByTheWallClock) {
  const Standstill::Verdict verdict = standstill_.judge(kBeginNs - kHour, 0);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_EQ(verdict.clock_shift_ns, -static_cast<std::int64_t>(kHour));
}

TEST_F(StandstillTest, AClockThatWentBackLessThanClocksMayDisagreeIsBelieved) {
  const Standstill::Verdict verdict = standstill_.judge(kBeginNs - 10 * kMilliNs, 0);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_EQ(verdict.clock_shift_ns, 0);
}

TEST_F(StandstillTest, ClocksThatPartedAreSeenOnce) {
  Machine::pass(kMilliNs);
  EXPECT_FALSE(standstill_.clocks_diverged(kBeginNs + kMilliNs));
  for (const std::uint64_t another : {kBeginNs - kHour, kBeginNs + kHour}) {
    Machine::pass(2 * kMilliNs);
    EXPECT_TRUE(standstill_.clocks_diverged(another + 2 * kMilliNs));
    Machine::pass(2 * kMilliNs);
    EXPECT_FALSE(standstill_.clocks_diverged(another + 4 * kMilliNs));
  }
}

TEST_F(StandstillTest, AfterAVerdictTheClockIsComparedWithItsNewState) {
  static_cast<void>(standstill_.judge(kBeginNs - kHour, 0));
  Machine::pass(60 * kMilliNs);
  const Standstill::Verdict verdict =
      standstill_.judge(kBeginNs - kHour + 60 * kMilliNs, 60 * kMilliNs);
  EXPECT_TRUE(verdict.frozen);
  EXPECT_EQ(verdict.clock_shift_ns, 0)
      << "the recording must now use the clock as it is after the restore";
}

}  // namespace
}  // namespace kymo
