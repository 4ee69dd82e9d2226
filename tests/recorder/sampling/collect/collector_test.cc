#include "recorder/sampling/collect/collector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "support/make_ring.h"

namespace kymo {
namespace {

// After start() has returned, the collector's thread may get no CPU for some time.
TEST(Collector, TicksBeforeItsThreadRanWereLostInSilence) {
  constexpr std::uint64_t kInterval = 1'000'000;
  Registry registry;
  ASSERT_TRUE(registry.counter({"steps", "help", Kind::counter, Unit::count, {}}));
  const auto sampler = registry.sampler({}).value();
  const auto ring = make_ring(2, 100, 1);
  GapQueue gaps(kInterval);
  RecorderCounts counts;
  Event stop;
  Event writer;
  Collector::Options options;
  options.start_ns = monotonic_ns() - 100 * kInterval;  // as if opening the files took 100 ms
  options.interval_ns = kInterval;
  options.flush_ns = 1'000'000'000;
  std::atomic<std::uint64_t> start_ns{options.start_ns};
  Collector collector(options, *sampler, *ring, gaps, counts.collected, stop, writer, start_ns);

  collector.begin();
  const std::uint64_t begun = (monotonic_ns() - options.start_ns) / kInterval;
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  stop.signal();
  collector.run();

  Gap gap;
  ASSERT_TRUE(gaps.try_take(&gap));
  EXPECT_GE(gap.start_ns, 100 * kInterval) << "ticks before begin() are not due";
  EXPECT_LE(gap.start_ns, begun * kInterval);
  EXPECT_EQ(gap.ticks, (gap.end_ns - gap.start_ns) / kInterval);
  EXPECT_GE(counts.collected.missed_late.get() + counts.collected.captured.get(), 8U);
}

// Before, stop() during a long sample left "late: unexplained", and the advice to lower the rate.
TEST(Collector, TicksThatALongSampleTookBeforeTheStopAreExplained) {
  constexpr std::uint64_t kInterval = 1'000'000;
  Event stop;
  Registry registry;
  ASSERT_TRUE(registry.callback({"slow", "help", Kind::gauge, Unit::count, {}},
                                [&stop, slow = true]() mutable -> std::uint64_t {
                                  if (std::exchange(slow, false)) {
                                    stop.signal();
                                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                  }
                                  return 1;
                                }));
  const auto sampler = registry.sampler({}).value();
  const auto ring = make_ring(2, 100, 1);
  GapQueue gaps(kInterval);
  RecorderCounts counts;
  Event writer;
  Collector::Options options;
  options.start_ns = monotonic_ns();
  options.interval_ns = kInterval;
  options.flush_ns = 1'000'000'000;
  std::atomic<std::uint64_t> start_ns{options.start_ns};
  Collector collector(options, *sampler, *ring, gaps, counts.collected, stop, writer, start_ns);
  collector.begin();
  collector.take_first_sample();
  collector.run();
  EXPECT_EQ(counts.collected.captured.get(), 2U);
  EXPECT_GE(counts.collected.late_sample.get(), 15U);
  EXPECT_LE(counts.collected.late_sample.get(), counts.collected.missed_late.get());
}

}  // namespace
}  // namespace kymo
