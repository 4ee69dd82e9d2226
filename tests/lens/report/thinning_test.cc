#include "lens/report/thinning.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace kymo::report {
namespace {

std::pair<double, double> low_and_high(const std::optional<Thinning::Extremes>& extremes) {
  EXPECT_TRUE(extremes.has_value());
  return extremes ? std::pair{extremes->low, extremes->high} : std::pair{-1.0, -1.0};
}

TEST(ThinningTest, KeepsTheLowestAndTheHighestValueOfASpan) {
  Thinning values(false);
  for (const std::uint64_t value : {5U, 2U, 9U, 4U}) values.add(value, value);
  EXPECT_EQ(values.last(), 4U);
  EXPECT_EQ(low_and_high(values.end_span()), (std::pair{2.0, 9.0}));
  values.add(10, 7);
  EXPECT_EQ(low_and_high(values.end_span()), (std::pair{7.0, 7.0}));
  EXPECT_FALSE(values.end_span());
}

TEST(ThinningTest, ARateCountsFromTheRowBeforeAlsoOfTheSpanBefore) {
  Thinning rates(true);
  rates.add(0, 100);
  EXPECT_FALSE(rates.end_span()) << "the first row alone gives no rate";
  rates.add(1'000'000'000, 130);
  rates.add(1'000'000'000, 999);
  rates.add(3'000'000'000, 979);
  EXPECT_EQ(low_and_high(rates.end_span()), (std::pair{-10.0, 30.0}));
}

TEST(ThinningTest, ARateIsOverAWindowThatEndsAtEachRow) {
  Thinning rates(true, 10);
  for (const std::uint64_t time : {0U, 6U, 9U}) rates.add(time, 0);
  EXPECT_FALSE(rates.end_span()) << "no window can end yet";
  rates.add(11, 22);  // since 0
  rates.add(16, 22);  // since 6
  EXPECT_EQ(low_and_high(rates.end_span()), (std::pair{2e9, 2.2e9}));
  rates.add(100, 22);
  rates.add(101, 122);  // since 16: from 100 it would be 100e9
  EXPECT_EQ(low_and_high(rates.end_span()), (std::pair{0.0, 100e9 / 85}));
}

TEST(ThinningTest, ManyRowsAtOnceAreThinnedLikeSingleOnes) {
  std::mt19937_64 random(1);
  for (const auto& [rates, window] :
       {std::pair{false, 0U}, std::pair{true, 0U}, std::pair{true, 5U}}) {
    Thinning at_once(rates, window);
    Thinning singly(rates, window);
    std::uint64_t time = 0;
    for (std::size_t span = 0; span < 50; ++span) {
      std::vector<std::uint64_t> times(random() % 20);
      std::vector<std::uint64_t> values(times.size());
      for (std::size_t i = 0; i < times.size(); ++i) {
        times[i] = time += random() % 3;
        values[i] = random() % 1000;
        singly.add(times[i], values[i]);
      }
      at_once.add(times, values);
      const auto some = at_once.end_span();
      const auto same = singly.end_span();
      ASSERT_EQ(some.has_value(), same.has_value()) << span;
      if (some) {
        EXPECT_EQ(low_and_high(some), low_and_high(same)) << span;
      }
      EXPECT_EQ(at_once.last(), singly.last());
    }
  }
}

}  // namespace
}  // namespace kymo::report
