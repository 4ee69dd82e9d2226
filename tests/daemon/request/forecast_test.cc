#include "daemon/request/forecast.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kSecond = 1'000'000'000;

store::Run took(std::uint64_t seconds, std::uint64_t mib) {
  store::Run run;
  run.duration_ns = seconds * kSecond;
  run.image_bytes = mib * kMebibyte;
  return run;
}

TEST(ForecastTest, WithoutHistoryNothingIsKnown) {
  const Forecast forecast = forecast_dump({}, 512 * kMebibyte, 30 * kSecond);
  EXPECT_EQ(forecast.verdict, Forecast::Verdict::unknown);
  EXPECT_EQ(forecast.text,
            "kymod cannot say whether the dump will meet the deadline of 30 s: there is no "
            "earlier dump to compare with; it has to write 512 MiB of memory");
}

TEST(ForecastTest, TheMedianAndTheWorstDecide) {
  const std::vector<store::Run> earlier{took(9, 512), took(1, 512), took(2, 512)};
  const auto verdict = [&](std::uint64_t seconds) {
    return forecast_dump(earlier, 512 * kMebibyte, seconds * kSecond).verdict;
  };
  EXPECT_EQ(verdict(10), Forecast::Verdict::likely);
  EXPECT_EQ(verdict(5), Forecast::Verdict::doubtful);
  EXPECT_EQ(verdict(1), Forecast::Verdict::unlikely);
  EXPECT_EQ(
      forecast_dump(earlier, 512 * kMebibyte, 5 * kSecond).text,
      "the dump may or may not meet the deadline of 5 s: judged by 3 earlier dumps, 512 MiB of "
      "memory take about 2 s, at most 9 s");
}

TEST(ForecastTest, MoreMemoryTakesLongerAndFailedDumpsDoNotCount) {
  std::vector<store::Run> earlier{took(2, 240), took(100, 1)};
  earlier[1].error = "the disk was full";
  const Forecast forecast = forecast_dump(earlier, 496 * kMebibyte, 30 * kSecond);
  EXPECT_EQ(forecast.expected_ns, 4 * kSecond);
  EXPECT_EQ(forecast.verdict, Forecast::Verdict::likely);
}

TEST(ForecastTest, CompressedImagesCountAsTheMemoryTheyHold) {
  store::Run packed = took(2, 10);
  packed.stats_json = R"({"pages_written": 126976})";  // 496 MiB
  EXPECT_EQ(forecast_dump({packed}, 496 * kMebibyte, kSecond).expected_ns, 2 * kSecond);
  packed.stats_json = "{broken";
  EXPECT_GT(forecast_dump({packed}, 496 * kMebibyte, kSecond).expected_ns, 2 * kSecond);
}

TEST(ForecastTest, TheTimesHaveTheRangeOfEarlierDumps) {
  std::vector<store::Run> earlier{took(1, 240), took(3, 240), took(2, 240), took(50, 1)};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t pages = 61440 + 256 * i;  // 240 MiB, and i more
    const std::size_t frozen_us = 100'000 * (i + 1);
    earlier[i].stats_json = "{\"pages_written\": " + std::to_string(pages) +
                            ", \"frozen_time_us\": " + std::to_string(frozen_us) + "}";
  }
  earlier[3].error = "the disk was full";
  const DumpTimes times = forecast_times(earlier, 240 * kMebibyte);
  EXPECT_EQ(times.dumps, 3U);
  EXPECT_EQ(times.written_bytes.low, 240 * kMebibyte);
  EXPECT_EQ(times.written_bytes.high, 242 * kMebibyte);
  EXPECT_EQ(times.frozen_ns.low, kSecond / 10);
  EXPECT_LT(times.frozen_ns.expected, kSecond / 5) << "it wrote 1 MiB more";
  EXPECT_GT(times.frozen_ns.expected, kSecond / 6);
  EXPECT_EQ(times.total_ns.low, kSecond);
  EXPECT_GT(times.total_ns.high, times.total_ns.expected);
  EXPECT_EQ(forecast_times(earlier, 496 * kMebibyte).frozen_ns.low, kSecond / 5)
      << "twice the work";
  EXPECT_EQ(forecast_times({}, kMebibyte).dumps, 0U);
}

}  // namespace
}  // namespace kymo::daemon
