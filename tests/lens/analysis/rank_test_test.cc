#include "lens/analysis/rank_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kymo::analysis {
namespace {

using Values = std::vector<double>;

Values drawn(std::mt19937_64& random, std::size_t count, double around = 10) {
  std::normal_distribution<double> normal(around, 1);
  Values values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(normal(random));
  return values;
}

// Computes p by its definition: over all ways to choose which values are called `after`.
double counted_p(const Values& before, const Values& after) {
  Values all(before);
  all.insert(all.end(), after.begin(), after.end());
  const auto u_of = [&](const std::vector<bool>& is_after) {
    double u = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < all.size(); ++j) {
        if (!is_after[i] || is_after[j]) continue;
        u += all[i] > all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
      }
    }
    return u;
  };
  std::vector<bool> choice(all.size());
  std::fill(choice.begin() + static_cast<std::ptrdiff_t>(before.size()), choice.end(), true);
  const double seen = u_of(choice);
  double choices = 0;
  double higher = 0;
  double lower = 0;
  std::sort(choice.begin(), choice.end());
  do {
    ++choices;
    higher += u_of(choice) >= seen ? 1 : 0;
    lower += u_of(choice) <= seen ? 1 : 0;
  } while (std::next_permutation(choice.begin(), choice.end()));
  return std::min(1.0, 2 * std::min(higher, lower) / choices);
}

TEST(MannWhitney, IsTheShareOfAllChoicesAlsoWithEqualValues) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 30; ++round) {
    Values before;
    Values after;
    for (int i = 0; i < 5; ++i) before.push_back(static_cast<double>(random() % 6));
    for (int i = 0; i < 4; ++i)
      after.push_back(static_cast<double>(random() % 6 + static_cast<unsigned>(round) % 3));
    EXPECT_NEAR(mann_whitney_p(before, after, 0), counted_p(before, after), 1e-12);
  }
}

TEST(MannWhitney, TheNormalDistributionTakesOverSmoothly) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    const Values before = drawn(random, 20);
    Values after = drawn(random, 20, 10.5);
    const double exact = mann_whitney_p(before, after, 0);
    after.push_back(10.25);  // 41 values
    EXPECT_NEAR(mann_whitney_p(before, after, 0), exact, 0.06);
  }
}

TEST(MannWhitney, AChangeWithinTheMarginIsNoChange) {
  std::mt19937_64 random(7);
  const Values before = drawn(random, 100, 1000);
  Values after;
  for (const double value : drawn(random, 100, 1000)) after.push_back(value * 1.04);
  EXPECT_LT(mann_whitney_p(before, after, 0), 1e-6);
  EXPECT_GT(mann_whitney_p(before, after, 0.05), 0.99);
  EXPECT_LT(mann_whitney_p(before, after, 0.03), 1e-6);
  EXPECT_LT(mann_whitney_p(after, before, 0.03), 1e-6);
}

TEST(MannWhitney, EqualOrMissingValuesTellNothing) {
  EXPECT_EQ(mann_whitney_p(Values(5, 1.0), Values(5, 1.0), 0), 1);
  EXPECT_EQ(mann_whitney_p(Values(50, 1.0), Values(50, 1.0), 0), 1);
  EXPECT_EQ(mann_whitney_p(Values{}, Values(5, 1.0), 0), 1);
}

TEST(MannWhitney, TheLowestPIsThatOfSamplesApart) {
  const Values before{1, 2, 3, 4};
  const Values after{5, 6, 7, 8};
  EXPECT_NEAR(mann_whitney_p(before, after, 0), lowest_p(4, 4), 1e-12);
  EXPECT_NEAR(lowest_p(4, 4), 2.0 / 70, 1e-12);
}

TEST(ShiftInterval, HoldsTheTrueShiftAsOftenAsItSays) {
  std::mt19937_64 random(11);
  for (const std::size_t count : {std::size_t{3}, std::size_t{6}, std::size_t{30}}) {
    int held = 0;
    double level = 0;
    constexpr int kDraws = 1000;
    for (int draw = 0; draw < kDraws; ++draw) {
      const Shift shift = shift_between(drawn(random, count, 10), drawn(random, count, 12));
      held += shift.low <= 2 && 2 <= shift.high ? 1 : 0;
      level = shift.level;
    }
    EXPECT_GT(level, count == 3 ? 0.89 : 0.949);
    EXPECT_GT(held, (level - 0.02) * kDraws) << count;
    EXPECT_LT(held, 990);
  }
}

TEST(ShiftInterval, IsTheMedianOfAllDifferences) {
  EXPECT_DOUBLE_EQ(shift_between(Values{1, 2, 3}, Values{4, 6, 80}).median, 4);
  EXPECT_EQ(shift_between(Values{}, Values{1}).level, 0);
  const Shift single = shift_between(Values{1}, Values{4});
  EXPECT_EQ(single.low, 3);
  EXPECT_EQ(single.level, 0);
}

TEST(CorrelationLength, IsThatOfTheProcess) {
  std::mt19937_64 random(13);
  std::normal_distribution<double> normal;
  for (const double keep : {0.0, 0.5, 0.8}) {
    Values series{0};
    for (int i = 0; i < 20'000; ++i) series.push_back(keep * series.back() + normal(random));
    const double wanted = (1 + keep) / (1 - keep);
    EXPECT_NEAR(*correlation_length(series), wanted, 0.2 * wanted) << keep;
  }
}

TEST(CorrelationLength, IsUnknownForValuesThatDoNotChange) {
  EXPECT_FALSE(correlation_length(Values(10, 3.0)).has_value());
  EXPECT_FALSE(correlation_length(Values{}).has_value());
}

}  // namespace
}  // namespace kymo::analysis
