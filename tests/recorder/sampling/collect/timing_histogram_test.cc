#include "recorder/sampling/collect/timing_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace kymo {
namespace {

TEST(TimingHistogram, IsEmptyAtFirst) {
  EXPECT_EQ(TimingHistogram().percentile(0.5), 0U);
}

TEST(TimingHistogram, PercentilesAreRightWithinSixPercent) {
  TimingHistogram histogram;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(random() >> (random() % 64));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(
        values[static_cast<std::size_t>(share * static_cast<double>(values.size()))]);
    const auto found = static_cast<double>(histogram.percentile(share));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * (1 + 1.0 / 16) + 1);
  }
}

TEST(TimingHistogram, HoldsTheExtremes) {
  TimingHistogram histogram;
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.percentile(0.5), UINT64_MAX);
}

}  // namespace
}  // namespace kymo
