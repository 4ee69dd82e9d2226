#include "lens/analysis/change_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace kymo::analysis {
namespace {

std::vector<double> noise(std::size_t count, double around, std::uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(around, 0.05);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(normal(random));
  }
  return values;
}

std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The Mann-Whitney U statistic, computed by its definition: compare all pairs.
double mann_whitney(const std::vector<double>& series, std::size_t cut) {
  double u = 0;
  for (std::size_t i = 0; i < cut; ++i) {
    for (std::size_t j = cut; j < series.size(); ++j) {
      u += series[i] > series[j] ? 1 : series[i] < series[j] ? -1 : 0;
    }
  }
  return u;
}

// U by its standard deviation.
double standardized(const std::vector<double>& series, std::size_t cut) {
  const auto n = static_cast<double>(series.size());
  const auto before = static_cast<double>(cut);
  return std::abs(mann_whitney(series, cut)) / std::sqrt(before * (n - before) * (n + 1) / 3);
}

TEST(CutTestTest, TheStatisticIsTheLargestOfAllCutsAlsoWithEqualValues) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> series(5 + random() % 20);
    for (double& value : series) {
      value = static_cast<double>(random() % 6);
    }
    double largest = 0;
    for (std::size_t cut = 3; cut + 3 <= series.size(); ++cut) {
      largest = std::max(largest, standardized(series, cut));
    }
    const CutTest found = cut_test(series);
    EXPECT_DOUBLE_EQ(found.statistic, largest);
    if (largest > 0) {
      EXPECT_DOUBLE_EQ(standardized(series, found.at), largest);
    }
  }
}

TEST(CutTestTest, TheProbabilityOfAFewValuesIsExact) {
  // U is 16, because the four low values come first. Of the 70 ways to place them, 2 give this U.
  const CutTest found = cut_test(std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2});
  EXPECT_EQ(found.at, 4U);
  EXPECT_DOUBLE_EQ(found.statistic, 16 / std::sqrt(48.0));
  EXPECT_DOUBLE_EQ(found.p, 2.0 / 70);
}

TEST(CutTestTest, TheSameSeriesHasTheSameVerdict) {
  const std::vector<double> series = joined(noise(30, 1), noise(30, 1.04, 8));
  EXPECT_EQ(cut_test(series).p, cut_test(series).p);
}

TEST(ChangePointTest, AFewNewestRunsAreFoundAfterManyBefore) {
  for (const auto& [before, after] : {std::pair{33U, 4U}, {96U, 4U}, {12U, 4U}}) {
    const std::vector<Change> changes =
        find_changes(joined(noise(before, 1), noise(after, 12, before)));
    ASSERT_EQ(changes.size(), 1U) << before << " + " << after;
    EXPECT_EQ(changes[0].at, before);
  }
}

TEST(ChangePointTest, AStepIsFoundWhereItIs) {
  const std::vector<Change> changes = find_changes(joined(noise(15, 1), noise(10, 1.3, 8)));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].at, 15U);
  EXPECT_FALSE(changes[0].drift);
  EXPECT_LT(changes[0].test.p, 0.001);
}

TEST(ChangePointTest, TheLastValueBeforeAStepBelongsBeforeItAlsoWhereItIsTheHighest) {
  std::vector<double> series = noise(15, 1);
  series.back() = 1.12;  // outside of the cut that the test finds by itself
  series = joined(series, noise(10, 1.3, 8));
  EXPECT_EQ(find_changes(series).at(0).at, 15U);
}

TEST(ChangePointTest, TwoStepsAreTwoChanges) {
  const std::vector<Change> changes =
      find_changes(joined(joined(noise(20, 1), noise(20, 1.5, 8)), noise(20, 1.2, 9)));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].at, 20U);
  EXPECT_EQ(changes[1].at, 40U);
}

TEST(ChangePointTest, ADriftIsOneChangeAndCalledSo) {
  std::vector<double> series = noise(40, 1);
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i] += 0.02 * static_cast<double>(i);
  }
  const std::vector<Change> changes = find_changes(series);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].drift);
}

TEST(ChangePointTest, NoiseAloneSeldomChanges) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    found += find_changes(noise(30, 1, seed)).empty() ? 0 : 1;
  }
  EXPECT_EQ(found, 16) << "5 in 100 are allowed; docs/diff.md says how many there are";
}

TEST(ChangePointTest, OneOutlierIsNoChange) {
  std::vector<double> series = noise(20, 1);
  series[12] = 50;
  EXPECT_TRUE(find_changes(series).empty());
}

TEST(ChangePointTest, AFewRunsShowNothing) {
  EXPECT_TRUE(find_changes({}).empty());
  EXPECT_TRUE(find_changes(std::vector<double>{1, 2}).empty());
  EXPECT_TRUE(find_changes(std::vector<double>{1, 1, 1, 9, 9, 9, 9}).empty());
  EXPECT_EQ(find_changes(std::vector<double>{1, 1, 1, 1, 9, 9, 9, 9}).size(), 1U);
}

TEST(ChangePointTest, AllTheSameIsNoChange) {
  EXPECT_TRUE(find_changes(std::vector<double>(30, 4)).empty());
  EXPECT_EQ(cut_test(std::vector<double>(30, 4)).p, 1);
}

}  // namespace
}  // namespace kymo::analysis
