#include "lens/analysis/robust.h"

#include <gtest/gtest.h>

namespace kymo::analysis {
namespace {

TEST(RobustTest, TheMedianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(RobustTest, QuantilesAreInterpolated) {
  EXPECT_EQ(quantile({0, 10, 20, 30, 40}, 0.25), 10);
  EXPECT_EQ(quantile({0, 10}, 0.25), 2.5);
  EXPECT_EQ(quantile({0, 10}, 0), 0);
  EXPECT_EQ(quantile({0, 10}, 1), 10);
}

TEST(RobustTest, OneOutlierMovesNoDeviation) {
  const double clean = scaled_mad({1, 2, 3, 4, 5});
  EXPECT_NEAR(clean, 1.4826, 1e-9);
  EXPECT_NEAR(scaled_mad({1, 2, 3, 4, 1e9}), clean, 1e-9);
}

TEST(RobustTest, TheLineGoesThroughMostPoints) {
  const Line line = median_line(std::vector<double>{1, 3, 5, 7, 900, 11, 13});
  EXPECT_EQ(line.slope, 2);
  EXPECT_EQ(line.start, 1);
  EXPECT_EQ(line.at(4), 9);
}

}  // namespace
}  // namespace kymo::analysis
