// The recorder when CLOCK_MONOTONIC goes back, as it does in a process that is restored on another
// machine. The test replaces the C library's clock_gettime().

#include "base/clock.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/test_sinks.h"

namespace {

std::atomic<long> g_back_s{0};
// The next time that this thread reads the clock, it is ahead by this many seconds. After that, the
// clock goes back.
thread_local long g_ahead_once_s = 0;

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's own
extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_MONOTONIC) {
    const long ahead_s = std::exchange(g_ahead_once_s, 0);
    out->tv_sec += ahead_s != 0 ? ahead_s : -g_back_s.load(std::memory_order_relaxed);
  }
  return static_cast<int>(result);
}

namespace kymo {
namespace {

constexpr std::uint64_t kIntervalNs = 1'000'000;

// Keeps the rows, and lets another thread see how many came.
struct CountedSink : KeepingSink {
  CountedSink() {
    on_write = [this] {
      writes.fetch_add(1);
      return Result<void>();
    };
  }
  std::atomic<int> writes{0};
};

void wait_for_writes(const CountedSink& sink, int more) {
  // nanosleep() does not use the clock that this program changes.
  const timespec nap{0, 1'000'000};
  for (const int begin = sink.writes.load(); sink.writes.load() < begin + more;) {
    ASSERT_EQ(::nanosleep(&nap, nullptr), 0);
  }
}

// CLOCK_MONOTONIC_RAW, which this program does not change.
std::uint64_t raw_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return to_nanos(now);
}

// The limits of a span of real time. The machine may stand still within it.
struct Span {
  std::uint64_t shortest_ns = 0;
  std::uint64_t longest_ns = 0;
};

// Starts and stops a profiler, and measures the limits of the time of its last row: the recording
// begins within start(), and the last row is taken within stop().
class Recorded {
 public:
  explicit Recorded(Profiler& profiler) : profiler_(profiler), begin_ns_(raw_ns()) {
    EXPECT_TRUE(profiler_.start());
    started_ns_ = raw_ns();
  }
  [[nodiscard]] Span stop() {
    const std::uint64_t stop_ns = raw_ns();
    EXPECT_TRUE(profiler_.stop());
    return {stop_ns - started_ns_, raw_ns() - begin_ns_};
  }

 private:
  Profiler& profiler_;
  std::uint64_t begin_ns_;
  std::uint64_t started_ns_ = 0;
};

// Expects that the recording's clock went on like the real time. Each time that the clock is set
// back, the recording's clock may lose or gain as much as two clocks can differ, which is below the
// 1 s of slack. An error would lose at least 3 s.
void expect_within(std::uint64_t row_ns, const Span& span) {
  constexpr std::uint64_t kSlackNs = 1'000'000'000;
  EXPECT_GE(row_ns + kSlackNs, span.shortest_ns);
  EXPECT_LE(row_ns, span.longest_ns + kSlackNs);
}

class ClockTest : public ::testing::TestWithParam<Pace> {
 protected:
  void TearDown() override { g_back_s = 0; }

  static ProfilerOptions options_for(const std::shared_ptr<CountedSink>& sink) {
    ProfilerOptions options;
    options.sink = sink;
    options.interval = std::chrono::nanoseconds(kIntervalNs);
    options.pace = GetParam();
    options.flush = std::chrono::milliseconds(10);
    return options;
  }
};

// The last sample is taken without a tick: its time was nearly 2^64 ns.
TEST_P(ClockTest, GoesBackBeforeTheLastSampleAndItsRowDoesNot) {
  Registry registry;
  ASSERT_TRUE(registry.counter({.name = "steps"}));
  const auto sink = std::make_shared<CountedSink>();
  ProfilerOptions options = options_for(sink);
  options.interval = std::chrono::hours(1);
  Profiler profiler(registry, options);
  Recorded recorded(profiler);
  g_back_s = 3;
  const Span span = recorded.stop();
  ASSERT_FALSE(sink->kept.empty());
  expect_within(sink->kept.back()[0], span);
}

TEST_P(ClockTest, GoesBackTwiceAndRowsAndCountersDoNot) {
  Registry registry;
  const Counter steps = registry.counter({.name = "steps"}).value();
  const auto sink = std::make_shared<CountedSink>();
  Profiler profiler(registry, options_for(sink));
  Recorded recorded(profiler);
  for (const long back_s : {3, 7}) {  // surely less than the uptime of the machine
    steps.add();
    wait_for_writes(*sink, 5);
    g_back_s = back_s;
    const std::uint64_t set_back_ns = monotonic_ns();
    timespec real{};
    ASSERT_EQ(::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &real), 0);
    ASSERT_LE(set_back_ns + static_cast<std::uint64_t>(back_s) * kNanosPerSecond, to_nanos(real));
  }
  steps.add();
  wait_for_writes(*sink, 5);
  const Span span = recorded.stop();

  const ProfilerStats stats = profiler.stats();
  EXPECT_EQ(stats.rows_written + stats.missed(), stats.ticks_due);
  ASSERT_EQ(stats.rows_written, sink->kept.size());
  for (std::size_t i = 1; i < sink->kept.size(); ++i) {
    ASSERT_LT(sink->kept[i - 1][0], sink->kept[i][0]) << "time went back at row " << i;
    ASSERT_LE(sink->kept[i - 1][1], sink->kept[i][1]) << "a counter went back at row " << i;
  }
  EXPECT_EQ(sink->kept.back()[1], 3U);
  // The time by which the clock was set back must be added to the recording's clock, so that it
  // does not stand still.
  expect_within(sink->kept.back()[0], span);
  std::uint64_t listed = 0;
  for (const Gap& gap : sink->listed) {
    listed += gap.ticks;
  }
  EXPECT_EQ(listed, stats.missed());
}

// As if the process was frozen within a sample, and then restored where the clock is behind. The
// time of a row is the middle of its sample.
TEST_P(ClockTest, GoesAheadWithinASampleAndThenBackAndRowsDoNot) {
  std::atomic<bool> steps{false};
  Registry registry;
  const auto within_sample = [&steps]() -> std::uint64_t {
    if (steps.exchange(false)) {
      g_ahead_once_s = 2;
      g_back_s = 60;
    }
    return 0;
  };
  ASSERT_TRUE(registry.callback({"gauge", "help", Kind::gauge, Unit::count, {}}, within_sample));
  const auto sink = std::make_shared<CountedSink>();
  Profiler profiler(registry, options_for(sink));
  ASSERT_TRUE(profiler.start());
  wait_for_writes(*sink, 5);
  steps = true;
  wait_for_writes(*sink, 5);
  ASSERT_TRUE(profiler.stop());
  EXPECT_FALSE(steps);
  for (std::size_t i = 1; i < sink->kept.size(); ++i) {
    ASSERT_LT(sink->kept[i - 1][0], sink->kept[i][0]) << "time went back at row " << i;
  }
}

// The clock goes back between a sample and the next reading of the clock. The next deadline is then
// a minute ahead.
TEST_P(ClockTest, GoesBackBetweenTwoTicksAndTheNextIsNotWaitedForTillItHasCaughtUp) {
  std::atomic<bool> steps_back{false};
  Registry registry;
  const auto within_sample = [&steps_back]() -> std::uint64_t {
    if (steps_back.exchange(false)) {
      g_back_s = 60;
    }
    return 0;
  };
  ASSERT_TRUE(registry.callback({"gauge", "help", Kind::gauge, Unit::count, {}}, within_sample));
  const auto sink = std::make_shared<CountedSink>();
  Profiler profiler(registry, options_for(sink));
  Recorded recorded(profiler);
  wait_for_writes(*sink, 5);
  steps_back = true;
  wait_for_writes(*sink, 5);
  const Span span = recorded.stop();
  EXPECT_FALSE(steps_back);
  EXPECT_LT(span.shortest_ns, 60 * kNanosPerSecond)
      << "the recorder waited until the clock had caught up";
  expect_within(sink->kept.back()[0], span);
  for (std::size_t i = 1; i < sink->kept.size(); ++i) {
    ASSERT_LT(sink->kept[i - 1][0], sink->kept[i][0]) << "time went back at row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Paces, ClockTest, ::testing::Values(Pace::thrifty, Pace::precise),
                         [](const auto& tested) {
                           return tested.param == Pace::thrifty ? "thrifty" : "precise";
                         });

}  // namespace
}  // namespace kymo
