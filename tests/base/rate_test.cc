#include "base/rate.h"

#include <gtest/gtest.h>

namespace kymo {
namespace {

TEST(RateTest, IsTheGrowthPerSecond) {
  EXPECT_EQ(rate_per_second(30, 10'000'000), 3000);
  EXPECT_EQ(rate_per_second(-30, 2'000'000'000), -15);
  EXPECT_EQ(rate_per_second(30, 0), 0);
}

TEST(RateTest, TheGrowthOfACounterThatFellIsNegative) {
  EXPECT_EQ(growth_between(2, 7), 5);
  EXPECT_EQ(growth_between(7, 2), -5);
  EXPECT_EQ(growth_between(0, UINT64_MAX), 0x1p64);
  EXPECT_EQ(growth_between(UINT64_MAX, UINT64_MAX - 1), -1);
}

}  // namespace
}  // namespace kymo
