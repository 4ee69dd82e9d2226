#include "daemon/request/forecast.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMs = 1'000'000;

store::Run took(std::uint64_t seconds, std::uint64_t mib) {
  store::Run run;
  run.duration_ns = seconds * kSecond;
  run.image_bytes = mib * kMebibyte;
  return run;
}

// A past dump that took a fixed time plus a time for each MiB.
store::Run on_disk(const std::string& disk, std::uint64_t mib, std::uint64_t fixed_ms,
                   double ms_a_mib) {
  store::Run run;
  run.disk = disk;
  run.image_bytes = mib * kMebibyte;
  run.duration_ns = static_cast<std::uint64_t>(
      (static_cast<double>(fixed_ms) + ms_a_mib * static_cast<double>(mib)) * 1e6);
  run.stood_still_ns = run.duration_ns / 2;
  return run;
}

TEST(ForecastTest, WithoutHistoryNothingIsKnown) {
  const Forecast forecast = forecast_dump({}, {512 * kMebibyte, ""}, 30 * kSecond);
  EXPECT_EQ(forecast.verdict, Forecast::Verdict::unknown);
  EXPECT_EQ(forecast.text,
            "kymod cannot say whether the dump will meet the deadline of 30 s: there is no "
            "earlier dump like it to this disk; it has to write about 512 MiB");
}

TEST(ForecastTest, TheMedianAndTheWorstDecide) {
  const EarlierDumps earlier{{took(9, 512), took(1, 512), took(2, 512)}, {}};
  const auto verdict = [&](std::uint64_t seconds) {
    return forecast_dump(earlier, {512 * kMebibyte, ""}, seconds * kSecond).verdict;
  };
  EXPECT_EQ(verdict(10), Forecast::Verdict::likely);
  EXPECT_EQ(verdict(5), Forecast::Verdict::doubtful);
  EXPECT_EQ(verdict(1), Forecast::Verdict::unlikely);
  EXPECT_EQ(forecast_dump(earlier, {512 * kMebibyte, ""}, 5 * kSecond).text,
            "the dump may or may not meet the deadline of 5 s: judged by 3 earlier dumps to this "
            "disk, 512 MiB take about 2 s, at most 9 s");
}

TEST(ForecastTest, MoreMemoryTakesLongerAndFailedDumpsDoNotCount) {
  EarlierDumps earlier{{took(2, 240), took(100, 1)}, {}};
  earlier.own[1].error = "the disk was full";
  const Forecast forecast = forecast_dump(earlier, {496 * kMebibyte, ""}, 30 * kSecond);
  EXPECT_EQ(forecast.expected_ns, 4 * kSecond);
  EXPECT_EQ(forecast.verdict, Forecast::Verdict::likely);
}

// A dump of 2.9 MiB foretold one of 103 MiB to the microsecond, and ten times too long.
TEST(ForecastTest, OneOrTwoDumpsDoNotShowHowFarTheNextOneDiffers) {
  const DumpTimes same = forecast_times({{took(2, 240)}, {}}, {240 * kMebibyte, ""});
  EXPECT_EQ(same.total_ns.low, kSecond);
  EXPECT_EQ(same.total_ns.expected, 2 * kSecond);
  EXPECT_EQ(same.total_ns.high, 4 * kSecond);
  const DumpTimes larger = forecast_times({{took(2, 16)}, {}}, {112 * kMebibyte, ""});
  EXPECT_EQ(larger.total_ns.low, kSecond) << "as if its time did not depend on the memory";
  EXPECT_EQ(larger.total_ns.high, 16 * kSecond);
  const DumpTimes two = forecast_times({{took(2, 240), took(4, 240)}, {}}, {240 * kMebibyte, ""});
  EXPECT_EQ(two.total_ns.high, 6 * kSecond);
}

TEST(ForecastTest, CompressedImagesCountAsTheMemoryTheyHold) {
  store::Run packed = took(2, 10);
  packed.stats_json = R"({"pages_written": 126976})";  // 496 MiB
  const PlannedDump planned{496 * kMebibyte, ""};
  EXPECT_EQ(forecast_dump({{packed}, {}}, planned, kSecond).expected_ns, 2 * kSecond);
  packed.stats_json = R"({"pages_written": 1024, "shpages_written": 125952})";
  EXPECT_EQ(forecast_dump({{packed}, {}}, planned, kSecond).expected_ns, 2 * kSecond)
      << "shared memory is memory, too";
  packed.stats_json = "{broken";
  EXPECT_GT(forecast_dump({{packed}, {}}, planned, kSecond).expected_ns, 2 * kSecond);
}

TEST(ForecastTest, TheTimesHaveTheRangeOfEarlierDumps) {
  EarlierDumps earlier{{took(1, 240), took(3, 240), took(2, 240), took(50, 1)}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t pages = 61440 + 256 * i;  // 240 MiB plus i MiB
    const std::size_t frozen_us = 100'000 * (i + 1);
    earlier.own[i].stats_json = "{\"pages_written\": " + std::to_string(pages) +
                                ", \"frozen_time_us\": " + std::to_string(frozen_us) + "}";
  }
  earlier.own[3].error = "the disk was full";
  const DumpTimes times = forecast_times(earlier, {240 * kMebibyte, ""});
  EXPECT_EQ(times.dumps, 3U);
  EXPECT_EQ(times.written_bytes.low, 240 * kMebibyte);
  EXPECT_EQ(times.written_bytes.high, 242 * kMebibyte);
  EXPECT_EQ(times.stood_still_ns.low, kSecond / 10);
  EXPECT_LT(times.stood_still_ns.expected, kSecond / 5)
      << "the dump of 200 ms wrote 1 MiB more than is planned";
  EXPECT_GT(times.stood_still_ns.expected, kSecond / 6);
  EXPECT_EQ(times.total_ns.low, kSecond);
  EXPECT_GT(times.total_ns.high, times.total_ns.expected);
  EXPECT_EQ(forecast_times(earlier, {496 * kMebibyte, ""}).stood_still_ns.low, kSecond / 5)
      << "twice the memory takes twice as long";
  EXPECT_EQ(forecast_times({}, {kMebibyte, ""}).dumps, 0U);
}

TEST(ForecastTest, TheFixedPartOfATimeDoesNotGrowWithMemory) {
  EarlierDumps earlier;
  for (const unsigned mib : {1U, 1U, 2U, 4U, 4U, 8U, 9U, 16U, 33U, 40U, 64U, 65U, 130U, 131U}) {
    const std::uint64_t noise_ms = 20 * (earlier.own.size() % 3);
    earlier.own.push_back(on_disk("ext4 /dev/sda1", mib, 120 + noise_ms, 0.75));
  }
  const DumpTimes times = forecast_times(earlier, {2048 * kMebibyte, "ext4 /dev/sda1"});
  EXPECT_EQ(times.dumps, 14U);
  EXPECT_GT(times.total_ns.expected, 1400 * kMs);
  EXPECT_LT(times.total_ns.expected, 1950 * kMs);
  EXPECT_LT(times.total_ns.high, 3000 * kMs);
  EXPECT_GE(times.total_ns.high, times.total_ns.expected);
  EXPECT_LE(times.total_ns.low, times.total_ns.expected);
  const DumpTimes small = forecast_times(earlier, {kMebibyte, "ext4 /dev/sda1"});
  EXPECT_LT(small.total_ns.expected, 160 * kMs);
  EXPECT_GT(small.total_ns.low, 100 * kMs);
}

TEST(ForecastTest, EachDiskHasALineOfItsOwn) {
  EarlierDumps earlier;
  for (const unsigned mib : {10U, 50U, 100U, 200U}) {
    earlier.own.push_back(on_disk("ext4 /dev/fast", mib, 100, 1));
    earlier.own.push_back(on_disk("nfs server:/slow", mib, 100, 50));
  }
  const auto expected_on = [&](const char* disk) {
    return forecast_times(earlier, {1000 * kMebibyte, disk}).total_ns.expected;
  };
  EXPECT_NEAR(static_cast<double>(expected_on("ext4 /dev/fast")), 1.1e9, 1e7);
  EXPECT_NEAR(static_cast<double>(expected_on("nfs server:/slow")), 50.1e9, 1e8);
}

// The forecast was that a dump would meet its deadline of 3 s, judged by 4 dumps to other disks. The disk took 44 s for a
// dump of another process, and this one failed.
TEST(ForecastTest, DumpsToOtherDisksSayNothingAboutThisOne) {
  EarlierDumps earlier;
  for (int i = 0; i < 4; ++i) earlier.own.push_back(on_disk("ext4 /dev/fast", 200, 100, 1));
  earlier.others = earlier.own;
  const PlannedDump planned{200 * kMebibyte, "ext4 /dev/slow"};
  EXPECT_EQ(forecast_times(earlier, planned).dumps, 0U);
  const Forecast unknown = forecast_dump(earlier, planned, 3 * kSecond);
  EXPECT_EQ(unknown.verdict, Forecast::Verdict::unknown);
  EXPECT_NE(unknown.text.find("there is no earlier dump like it to this disk"), std::string::npos);
  earlier.others.push_back(on_disk("ext4 /dev/slow", 350, 100, 125));
  const Forecast known = forecast_dump(earlier, planned, 3 * kSecond);
  EXPECT_EQ(known.verdict, Forecast::Verdict::unlikely);
  EXPECT_NE(known.text.find("judged by 1 earlier dump of others to this disk"), std::string::npos)
      << known.text;
  EXPECT_GT(known.expected_ns, 20 * kSecond);
}

// The forecast for a process of 240 KiB was "about 727 us (727 us to 14.7 s)". It took 62.7 ms.
TEST(ForecastTest, NoTimeIsBelowTheFixedPartOfADumpToThisDisk) {
  EarlierDumps earlier;
  for (const unsigned mib : {150U, 300U, 700U, 1400U}) {
    earlier.others.push_back(on_disk("ext4 /dev/sda1", mib, 120, 10));
  }
  const PlannedDump planned{240 * 1024, "ext4 /dev/sda1"};
  EXPECT_GT(forecast_times(earlier, planned).total_ns.low, 100 * kMs)
      << "large dumps are scaled down with their fixed part";
  earlier.others.insert(earlier.others.begin(), on_disk("ext4 /dev/sda1", 8, 62, 0.1));
  const DumpTimes times = forecast_times(earlier, planned);
  EXPECT_GE(times.total_ns.low, 62 * kMs) << "a small dump has shown the fixed part";
  EXPECT_GE(times.stood_still_ns.low, 31 * kMs);
}

TEST(ForecastTest, AllImagesOfAnEarlierDumpCount) {
  store::Run run = took(2, 708);
  run.stats_json = R"({"pages_written": 2048})";
  EXPECT_EQ(forecast_times({{run}, {}}, {708 * kMebibyte, ""}).written_bytes.expected,
            708 * kMebibyte);
  run.image_bytes = 10 * kMebibyte;  // compressed
  run.written_bytes = 708 * kMebibyte;
  EXPECT_EQ(forecast_times({{run}, {}}, {708 * kMebibyte, ""}).written_bytes.expected,
            708 * kMebibyte);
}

// All dumps of this process had the same size. So only the dumps of other processes show how the
// time grows with the size.
TEST(ForecastTest, DumpsOfOtherProcessesTellHowATimeGrows) {
  EarlierDumps earlier;
  for (int i = 0; i < 3; ++i) earlier.own.push_back(on_disk("ext4 /dev/sda1", 8, 500, 1));
  for (const unsigned mib : {10U, 50U, 100U, 200U}) {
    earlier.others.push_back(on_disk("ext4 /dev/sda1", mib, 100, 2));
  }
  const DumpTimes times = forecast_times(earlier, {1008 * kMebibyte, "ext4 /dev/sda1"});
  EXPECT_EQ(times.dumps, 3U);
  EXPECT_FALSE(times.of_others);
  EXPECT_NEAR(static_cast<double>(times.total_ns.expected), 2.508e9, 1e7);
  earlier.own.clear();
  EXPECT_TRUE(forecast_times(earlier, {kMebibyte, "ext4 /dev/sda1"}).of_others);
}

}  // namespace
}  // namespace kymo::daemon
