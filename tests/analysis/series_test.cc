#include "analysis/series.h"

#include <gtest/gtest.h>

#include <string>

#include "temp_folder.h"

namespace kymo::analysis {
namespace {

TEST(Series, ThinsWithoutLosingASpike) {
  const tests::TempFolder folder;
  std::string rows = "Time (ns)\ta\tlevel\n";
  for (std::uint64_t row = 0; row < 10'000; ++row) {
    rows += std::to_string(row * 100) + "\t" + std::to_string(row) + "\t" +
            (row == 7777 ? "1000000" : "5") + "\n";
  }
  auto series = read_series(folder.file("a.tsv", rows), {{1, 0}, 0, 999'900, 100});
  ASSERT_TRUE(series.ok());
  ASSERT_EQ(series->size(), 2U);
  const Series& level = (*series)[0];
  EXPECT_LE(level.points.size(), 100U);
  EXPECT_GE(level.points.size(), 99U);
  std::uint64_t highest = 0;
  for (const Point& point : level.points) {
    EXPECT_EQ(point.low, 5U);
    highest = std::max(highest, point.high);
  }
  EXPECT_EQ(highest, 1'000'000U);
  EXPECT_EQ((*series)[1].points.back().last, 9999U);
  EXPECT_EQ((*series)[1].points.back().time_ns, 999'900U);
}

TEST(Series, TakesOnlyTheTimesAskedFor) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\ta\n1\t1\n2\t2\n3\t3\n4\t4\n");
  auto series = read_series(path, {{0}, 2, 3, 10});
  ASSERT_TRUE(series.ok());
  ASSERT_EQ((*series)[0].points.size(), 2U);
  EXPECT_EQ((*series)[0].points[0].last, 2U);
  EXPECT_FALSE(read_series(path, {{1}, 0, 9, 10}).ok());
}

}  // namespace
}  // namespace kymo::analysis
