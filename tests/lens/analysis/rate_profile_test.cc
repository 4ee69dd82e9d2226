#include "lens/analysis/rate_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kymo::analysis {
namespace {

constexpr std::uint64_t kWindow = 10'000'000;

double rate_in_window(std::uint64_t growth) {
  return static_cast<double>(growth) * 100;
}

RateProfile profile_of(const std::vector<std::uint64_t>& growths) {
  RateProfile profile;
  for (std::size_t i = 0; i < growths.size(); ++i) {
    profile.add(i * kWindow, (i + 1) * kWindow, growths[i]);
  }
  return profile;
}

TEST(RateProfile, PercentilesOfFewWindowsAreExact) {
  const RatePercentiles found = profile_of({5, 1, 4, 2, 3, 10, 9, 8, 7, 6}).percentiles();
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.windows, 10U);
  EXPECT_DOUBLE_EQ(found.p50, rate_in_window(5));
  EXPECT_DOUBLE_EQ(found.p90, rate_in_window(9));
  EXPECT_DOUBLE_EQ(found.p99, rate_in_window(10));
}

TEST(RateProfile, PercentilesOfManyWindowsAreWithinOnePercent) {
  std::mt19937_64 random(3);
  for (const std::size_t count : {RateProfile::kMaxProfileCells, RateProfile::kMaxProfileCells + 1,
                                  std::size_t{20'000}, std::size_t{100'003}}) {
    std::vector<std::uint64_t> growths;
    for (std::size_t i = 0; i < count; ++i) {
      growths.push_back(
          static_cast<std::uint64_t>(std::exp(static_cast<double>(random() % 2000) / 100)));
    }
    const RatePercentiles found = profile_of(growths).percentiles();
    EXPECT_EQ(found.exact, count <= RateProfile::kMaxProfileCells);
    EXPECT_EQ(found.windows, count);
    std::sort(growths.begin(), growths.end());
    for (const auto& [q, seen] : {std::pair{0.5, found.p50}, {0.9, found.p90}, {0.99, found.p99}}) {
      const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(count))) - 1;
      const double wanted = rate_in_window(growths[rank]);
      EXPECT_NEAR(seen, wanted, 0.01 * wanted) << count << " " << q;
    }
  }
}

TEST(RateProfile, StillnessAndExtremesHaveARate) {
  std::vector<std::uint64_t> growths(10'000, 0);
  EXPECT_EQ(profile_of(growths).percentiles().p99, 0);
  growths.assign(10'000, UINT64_MAX);
  EXPECT_NEAR(profile_of(growths).percentiles().p50, 0x1p64 * 100, 0x1p64);
  EXPECT_EQ(profile_of({}).percentiles().windows, 0U);
  EXPECT_EQ(profile_of({0, 0}).busiest().end_ns, 0U);
}

TEST(RateProfile, NoPercentileLiesAboveTheHighestRate) {
  for (const std::uint64_t growth : {std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1021}}) {
    const std::vector<std::uint64_t> growths(10'000, growth);
    EXPECT_LE(profile_of(growths).percentiles().p99, rate_in_window(growth)) << growth;
  }
}

TEST(RateProfile, TheBusiestStretchIsThatOfHalfTheHighestRate) {
  const BusyStretch found = profile_of({1, 0, 4, 5, 8, 10, 4, 9, 1}).busiest();
  EXPECT_EQ(found.begin_ns, 3 * kWindow);
  EXPECT_EQ(found.end_ns, 6 * kWindow);
  EXPECT_DOUBLE_EQ(found.growth, 23);
}

TEST(RateProfile, TheBusiestStretchOfALongRecordingIsFoundWithinItsCells) {
  std::vector<std::uint64_t> growths(50'000, 1);
  std::fill(growths.begin() + 30'000, growths.begin() + 32'000, 1000);
  const BusyStretch found = profile_of(growths).busiest();
  EXPECT_NEAR(static_cast<double>(found.begin_ns), 30'000.0 * kWindow, 16.0 * kWindow);
  EXPECT_NEAR(static_cast<double>(found.end_ns), 32'000.0 * kWindow, 16.0 * kWindow);
  EXPECT_NEAR(found.growth, 2'000'000, 20'000);
}

}  // namespace
}  // namespace kymo::analysis
