#include "checkpoint/inside/timeline.h"

#include <gtest/gtest.h>

#include <array>

namespace kymo::inside {
namespace {

TEST(Timeline, SaysHowMuchAColumnHasGrownInAWindow) {
  Timeline timeline(2);
  for (std::uint64_t t = 0; t <= 100; ++t) timeline.add(t * 10, std::array{t, 3 * t});
  EXPECT_EQ(timeline.grown(0, 200, 500), 30U);
  EXPECT_EQ(timeline.grown(1, 200, 500), 90U);
  EXPECT_EQ(timeline.grown(0, 0, 100'000), 100U) << "up to the last reading";
  EXPECT_EQ(timeline.grown(0, 205, 495), 30U)
      << "interpolated between the readings around the window";
}

TEST(Timeline, IsBoundedAndStaysRight) {
  Timeline timeline(1);
  constexpr std::uint64_t kReadings = 1'000'000;
  for (std::uint64_t t = 0; t < kReadings; ++t) timeline.add(t, std::array{t});
  const std::uint64_t grown = timeline.grown(0, 250'000, 750'000);
  EXPECT_NEAR(static_cast<double>(grown), 500'000.0, 2.0 * kReadings / Timeline::kMaxReadings * 2);
}

TEST(Timeline, WithFewerThanTwoReadingsNothingIsKnown) {
  Timeline timeline(1);
  EXPECT_EQ(timeline.grown(0, 0, 10), 0U);
  timeline.add(5, std::array{std::uint64_t{7}});
  EXPECT_EQ(timeline.grown(0, 0, 10), 0U);
}

TEST(Timeline, SaysHowLongTheReaderDidNotRun) {
  Timeline timeline(1);
  const std::vector<std::uint64_t> value{0};
  constexpr std::uint64_t kMs = 1'000'000;
  for (const std::uint64_t ms : {0U, 50U, 149U, 400U, 450U, 1450U}) timeline.add(ms * kMs, value);
  EXPECT_EQ(timeline.gaps_ns(0, 2000 * kMs), (251 + 1000) * kMs) << "a pause of 99 ms is not a gap";
  EXPECT_EQ(timeline.gaps_ns(200 * kMs, 500 * kMs), (200 + 50) * kMs)
      << "only the part inside this time counts";
}

}  // namespace
}  // namespace kymo::inside
