#include "recorder/sampling/history/rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "recorder/metrics/metric_rules.h"

namespace kymo {
namespace {

std::vector<Column> columns() {
  return {columns_of({"dumps", "", Kind::counter, Unit::count, {{"result", {"error"}}}}).front(),
          columns_of({"phase", "", Kind::gauge, Unit::count, {}}).front(),
          columns_of({"frozen_time_us", "", Kind::counter, Unit::microseconds, {}}).front()};
}

// Returns the rows for which the rule fires. Rows are 1 ms apart and have these values in the
// column.
std::vector<std::size_t> fires(const std::string& text, std::size_t column,
                               const std::vector<std::uint64_t>& values) {
  Rule rule = Rule::parse(text).value();
  EXPECT_TRUE(rule.bind(columns(), std::chrono::milliseconds(1)));
  std::vector<std::size_t> fired;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::uint64_t> row = {i * 1'000'000, 0, 0, 0};
    row.at(column) = values[i];
    if (rule.fires_at(row)) {
      fired.push_back(i);
    }
  }
  return fired;
}

using At = std::vector<std::size_t>;

TEST(Rule, AGaugeIsComparedByItsValueAndFiresOncePerEpisode) {
  EXPECT_EQ(fires("phase > 2", 2, {0, 2, 3, 4, 3, 2, 3}), (At{2, 6}));
  EXPECT_EQ(fires("phase>=2", 2, {0, 2, 3, 1, 2}), (At{1, 4}));
  EXPECT_EQ(fires(" phase < 2 ", 2, {5, 1, 0, 2, 1}), (At{1, 4}));
  EXPECT_EQ(fires("phase <= 2", 2, {5, 2, 3, 2}), (At{1, 3}));
}

TEST(Rule, ACounterIsComparedByItsGrowthFromRowToRow) {
  EXPECT_EQ(fires("frozen_time_us > 500000", 3, {400000, 700000, 700000, 1200001, 1200001}),
            (At{3}));
  EXPECT_EQ(fires("dumps[error] > +0", 1, {3, 3, 4, 4, 5}), (At{2, 4}));
  EXPECT_EQ(fires("dumps[error] > 0", 1, {3, 3, 4, 4, 5}), (At{2, 4}));
}

TEST(Rule, WhatACounterHadBeforeTheFirstRowIsNoGrowth) {
  EXPECT_EQ(fires("frozen_time_us > 5", 3, {1'000'000, 1'000'000}), At{});
}

// docs/record.md says so: a rule on what is normally true takes a snapshot at each start.
TEST(Rule, AConditionThatIsTrueInTheFirstRowFiresAtOnceUnlessItNeedsARowBefore) {
  EXPECT_EQ(fires("phase > 2", 2, {3, 3, 3, 3}), At{0});
  EXPECT_EQ(fires("phase < 1", 2, {0, 0, 1, 0}), (At{0, 3}));
  EXPECT_EQ(fires("phase > +0", 2, {3, 3, 3, 3}), At{});
  EXPECT_EQ(fires("frozen_time_us < 5", 3, {7, 7, 7, 7}), At{1}) << "it does not grow";
  const std::vector<std::uint64_t> still(200, 7);
  EXPECT_EQ(fires("rate(frozen_time_us) < 5", 3, still).size(), 1U);
  EXPECT_EQ(fires("rate(frozen_time_us) < 5", 3, {still.begin(), still.begin() + 99}), At{});
}

TEST(Rule, AGaugesGrowthIsComparedWhereAPlusSaysSo) {
  EXPECT_EQ(fires("phase > +1", 2, {7, 8, 10, 10, 12}), (At{2, 4}));
}

TEST(Rule, ARateIsGrowthASecondOverATenthOfOne) {
  std::vector<std::uint64_t> values(400);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < 200 ? i : 200 + (i - 200) * 20;  // grows by 1000 per second, and then by 20000
  }
  EXPECT_EQ(fires("rate(frozen_time_us) > 10000", 3, values), (At{248}));
  EXPECT_EQ(fires("rate(frozen_time_us) > 30000", 3, values), At{});
}

TEST(Rule, ARateMissedABurstThatLayAcrossTwoWindows) {
  constexpr std::size_t kPositions = 110;
  for (const std::size_t apart : {1U, 10U, 40U, 60U, 99U}) {
    std::size_t missed = 0;
    std::size_t late = 0;
    for (std::size_t position = 0; position < kPositions; ++position) {
      const std::size_t second = 200 + position + apart;
      std::vector<std::uint64_t> values(600);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (i >= 200 + position ? 700U : 0U) + (i >= second ? 700U : 0U);
      }
      // Within 100 ms, one jump gives a rate of 7000 per second, and two jumps give 14000.
      const At fired = fires("rate(frozen_time_us) > 10000", 3, values);
      missed += fired.empty() ? 1U : 0U;
      late += fired == At{second} ? 0U : 1U;
    }
    EXPECT_EQ(missed, 0U) << apart << " ms apart";
    EXPECT_EQ(late, 0U) << apart << " ms apart";
  }
}

// Rows are some microseconds early or late. So a time of 100 ms has sometimes 99 rows and sometimes
// 101.
TEST(Rule, ARateOfRowsThatAreNotExactlyOnTimeIsOverAsManyRows) {
  const auto fired_at = [](std::chrono::nanoseconds interval, std::uint64_t growth) {
    Rule rule = Rule::parse("rate(frozen_time_us) >= 900").value();
    EXPECT_TRUE(rule.bind(columns(), interval));
    const auto interval_ns = static_cast<std::uint64_t>(interval.count());
    std::vector<std::size_t> fired;
    std::uint64_t value = 0;
    for (std::size_t i = 1; i <= 40; ++i) {
      value += i == 20 ? growth : 0;
      const std::uint64_t early_ns = i % 2 * (interval_ns / 1000);
      if (rule.fires_at(std::vector<std::uint64_t>{i * interval_ns - early_ns, 0, 0, value})) {
        fired.push_back(i);
      }
    }
    return fired;
  };
  EXPECT_EQ(fired_at(std::chrono::milliseconds(100), 100), At{20});
  EXPECT_EQ(fired_at(std::chrono::milliseconds(50), 100), At{20});
  EXPECT_EQ(fired_at(std::chrono::seconds(1), 1000), At{20});
}

TEST(Rule, ARateAtAShortIntervalNeedsNoMoreMemoryAndMissesNothing) {
  Rule rule = Rule::parse("rate(frozen_time_us) > 10000").value();
  EXPECT_TRUE(rule.bind(columns(), std::chrono::microseconds(1)));
  std::vector<std::size_t> fired;
  for (std::size_t i = 0; i < 400'000; ++i) {  // two jumps, 70 ms apart
    const std::uint64_t value = (i >= 150'000 ? 700U : 0U) + (i >= 220'000 ? 700U : 0U);
    if (rule.fires_at(std::vector<std::uint64_t>{i * 1'000, 0, 0, value})) {
      fired.push_back(i);
    }
  }
  EXPECT_EQ(fired, At{220'000});
}

// The counter grows in steps. While the window moves over them, the rate is alternately above and
// below the limit.
TEST(Rule, ARateAroundItsLimitFiresOnce) {
  std::vector<std::uint64_t> values(2000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < 200 ? 0 : (i - 200) / 7 * 7;  // grows by 7 in each seventh row
  }
  EXPECT_EQ(fires("rate(frozen_time_us) > 1000", 3, values).size(), 1U);
}

TEST(Rule, ARateFiresAgainAfterItWasFalseForLongerThanItsWindow) {
  std::vector<std::uint64_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (i >= 200 ? 2000U : 0U) + (i >= 350 ? 2000U : 0U) + (i >= 650 ? 2000U : 0U);
  }
  // The first jump leaves the window at 300, so the rule is false from then on. At 350, this is
  // less than 150 ms ago. The second leaves it at 450. At 650, this is more than 150 ms ago.
  EXPECT_EQ(fires("rate(frozen_time_us) > 10000", 3, values), (At{200, 650}));
}

TEST(Rule, ASingleStepDoesNotMakeARuleForStandstillFireAgain) {
  for (const std::uint64_t interval_us : {1'000U, 30'000U, 100'000U, 1'000'000U}) {
    Rule rule = Rule::parse("rate(frozen_time_us) < 1000").value();
    EXPECT_TRUE(rule.bind(columns(), std::chrono::microseconds(interval_us)));
    const std::uint64_t second = std::max<std::uint64_t>(10, 1'000'000 / interval_us);  // in rows
    std::vector<std::uint64_t> fired;
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < 30 * second; ++i) {
      // A step each second, and then a growth that goes on for a second.
      const bool steps = i < 20 * second && i % second == 5;
      const bool goes_on = i >= 25 * second && i < 26 * second;
      value += steps || goes_on ? 1'000'000 : 0;
      const std::uint64_t late_ns = i * 7919 % (interval_us * 20);  // up to 2% of the interval
      if (rule.fires_at(
              std::vector<std::uint64_t>{i * interval_us * 1000 + late_ns, 0, 0, value})) {
        fired.push_back(i / second);
      }
    }
    EXPECT_EQ(fired, (std::vector<std::uint64_t>{0, 26})) << interval_us << " us";
  }
}

TEST(Rule, LimitsAreExactUpToTheLargestNumber) {
  EXPECT_EQ(fires("phase >= 18446744073709551615", 2, {UINT64_MAX - 1, UINT64_MAX}), At{1});
}

struct Refused {
  const char* text;
  const char* says;
};

TEST(Rule, WhatDoesNotParseIsSaidWithItsPlace) {
  for (const Refused& refused : std::initializer_list<Refused>{
           {"", "at character 1: expected the name of a column"},
           {"> 5", "at character 1: expected the name of a column"},
           {"phase", "at character 6: expected one of > >= < <="},
           {"phase == 5", "at character 7: expected one of > >= < <="},
           {"phase >> 5", "at character 8: expected a whole number"},
           {"phase > five", "at character 9: expected a whole number"},
           {"phase > 18446744073709551616", "at character 9: expected a whole number"},
           {"phase > -1", "at character 9: expected a whole number"},
           {"phase > 5 ms", "at character 11: expected the end"},
           {"phase > 1.5", "at character 10: expected the end"},
           {"rate(phase > 5", "at character 12: expected ')'"},
           {"rate() > 5", "at character 6: expected the name of a column"},
           {"rate(phase, 5) > 5", "at character 13: expected a time from 1 ns to 1 h"},
           {"rate(phase, 0ms) > 5", "at character 13: expected a time"},
           {"rate(phase, 61m) > 5", "at character 13: expected a time"},
           {"rate(phase, 3601s) > 5", "at character 13: expected a time"},
           {"rate(phase, 10ms > 5", "at character 18: expected ')'"},
           {"rate(phase) > +5", "at character 15: expected a number without +"},
           {"dumps[error > 5", "at character 16: expected the name of a column"}}) {
    const Result<Rule> rule = Rule::parse(refused.text);
    ASSERT_FALSE(rule) << refused.text;
    EXPECT_EQ(rule.error().code, Code::invalid_argument);
    EXPECT_NE(rule.error().message.find(refused.says), std::string::npos) << rule.error().message;
  }
}

// A burst of 5 ms is ten times its share of 100 ms.
TEST(Rule, TheWindowOfARateIsAnArgument) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t row = 0; row < 400; ++row) {
    values.push_back(std::clamp<std::uint64_t>(row, 250, 255) * 20);  // 100 in 5 ms
  }
  EXPECT_EQ(fires("rate(frozen_time_us) > 5000", 3, values), At{});
  EXPECT_EQ(fires("rate(frozen_time_us, 10ms) > 5000", 3, values), (At{253}));
  EXPECT_EQ(fires("rate( frozen_time_us , 10000us ) > 5000", 3, values), (At{253}));
  EXPECT_EQ(fires("rate(frozen_time_us, 1s) > 50", 3, values), At{}) << "the window is not full";
  EXPECT_EQ(fires("rate(frozen_time_us,100ms)>5000", 3, values), At{});
}

TEST(Rule, AColumnThatIsNotRecordedIsNamedWithTheNearOnes) {
  Rule rule = Rule::parse("frozen_time > 5").value();
  const Result<void> bound = rule.bind(columns(), std::chrono::milliseconds(1));
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().message.find("no column frozen_time is recorded"), std::string::npos);
  EXPECT_NE(bound.error().message.find("frozen_time_us"), std::string::npos);
}

}  // namespace
}  // namespace kymo
