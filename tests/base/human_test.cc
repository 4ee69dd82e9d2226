#include "base/human.h"

#include <gtest/gtest.h>

namespace kymo::human {
namespace {

TEST(HumanNumbers, ScalesTimesAndBytes) {
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(999), "999 ns");
  EXPECT_EQ(duration(999.9), "1.00 µs");
  EXPECT_EQ(duration(12'345), "12.3 µs");
  EXPECT_EQ(duration(4'560'000'000), "4.56 s");
  EXPECT_EQ(duration(7.2e12), "2.00 h");
  EXPECT_EQ(bytes(1023), "1023 B");
  EXPECT_EQ(bytes(1536), "1.50 KiB");
  EXPECT_EQ(bytes(536'870'912), "512 MiB");
}

TEST(HumanNumbers, TakesTheTypesThatTimesAndBytesHave) {
  EXPECT_EQ(duration(std::uint64_t{12'345}), "12.3 µs");
  EXPECT_EQ(duration(std::uint32_t{7}), "7 ns");
  EXPECT_EQ(duration(std::chrono::microseconds(1500)), "1.50 ms");
  EXPECT_EQ(bytes(std::uint64_t{1} << 40U), "1 TiB");
}

TEST(HumanNumbers, GroupsCountsExactly) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(HumanNumbers, ScalesRates) {
  EXPECT_EQ(count_rate(2'000'000), "2 M/s");
  EXPECT_EQ(count_rate(45'600), "45.6 k/s");
}

TEST(HumanNumbers, WritesSharesAndChanges) {
  EXPECT_EQ(percent(0.12345), "12.35 %");
  EXPECT_EQ(whole_percent(0.475), "48 %");
  EXPECT_EQ(whole_percent(1), "100 %");
  EXPECT_EQ(signed_percent(0.1234), "+12.3 %");
  EXPECT_EQ(signed_percent(-0.05), "-5.0 %");
  EXPECT_EQ(signed_percent(0), "+0.0 %");
}

}  // namespace
}  // namespace kymo::human
