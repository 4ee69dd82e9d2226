#include "daemon/recording/outcome_counts.h"

#include <gtest/gtest.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <algorithm>

#include "base/clock.h"

namespace kymo::daemon {
namespace {

// "NAME{VALUE,VALUE} COUNT" of each series.
std::vector<std::string> series_of(const OutcomeCounts& counts) {
  std::vector<std::string> all;
  for (const prometheus::MetricFamily& family : counts.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string text = family.name + "{";
      for (const auto& label : metric.label) text += label.value + ",";
      const double value =
          family.type == prometheus::MetricType::Gauge ? metric.gauge.value : metric.counter.value;
      text.back() = '}';
      all.push_back(text + " " + std::to_string(static_cast<int>(value)));
    }
  }
  return all;
}

using Series = std::vector<std::string>;

// Those that have an alert. Before they were shown from the beginning, Prometheus would not have seen the first one.
const Series kFromTheBeginning{"kymo_refusals_total{dump,disk-full} 0",
                               "kymo_refusals_total{restore,damaged-images} 0"};

TEST(OutcomeCountsTest, RefusalsAreCountedApartFromFailures) {
  OutcomeCounts counts;
  EXPECT_EQ(series_of(counts), kFromTheBeginning);
  counts.failed("dump", "ghost-big");
  counts.refused("dump", "in-use", "", unix_ns());
  counts.refused("dump", "in-use", "", unix_ns());
  EXPECT_EQ(series_of(counts),
            (Series{"kymo_failures_total{dump,ghost-big} 1", kFromTheBeginning[0],
                    "kymo_refusals_total{dump,in-use} 2", kFromTheBeginning[1]}));
}

TEST(OutcomeCountsTest, ARowOfRefusalsEndsWithASuccess) {
  OutcomeCounts counts;
  counts.continue_row("dump", "job:web", 4, unix_ns());
  counts.refused("dump", "in-use", "job:web", unix_ns());
  counts.refused("restore", "not-now", "job:web", unix_ns());
  const std::string dumps = "kymo_refused_in_a_row{dump,job:web} 5";
  const std::string restores = "kymo_refused_in_a_row{restore,job:web} 1";
  const auto has = [&](const std::string& one) {
    const Series all = series_of(counts);
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  EXPECT_TRUE(has(dumps) && has(restores));
  counts.succeeded("dump", "job:web", {unix_ns(), 1});
  EXPECT_FALSE(has(dumps));
  EXPECT_TRUE(has(restores));
  counts.forget("job:web");
  EXPECT_FALSE(has(restores));
}

TEST(OutcomeCountsTest, TheLastSuccessOfATargetIsShownUntilItIsRemoved) {
  OutcomeCounts counts;
  counts.succeeded("dump", "job:web", {1'700'000'000'000'000'000, 2'000'000'000});
  counts.succeeded("dump", "job:web", {1'700'000'060'000'000'000, 3'000'000'000});
  counts.succeeded("dump", "", {1, 1});  // no target that may be shown
  Series expected = kFromTheBeginning;
  expected.insert(expected.end(), {"kymo_last_success_timestamp_seconds{dump,job:web} 1700000060",
                                   "kymo_last_success_duration_seconds{dump,job:web} 3"});
  EXPECT_EQ(series_of(counts), expected);
  for (int i = 0; i < 1000; ++i) {
    counts.succeeded("dump", "job:" + std::to_string(i), {1'800'000'000'000'000'000, 1});
  }
  EXPECT_EQ(series_of(counts).size(), 2U + 2 * 1000);
  counts.forget("job:7");
  EXPECT_EQ(series_of(counts).size(), 2U + 2 * 999);
}

TEST(OutcomeCountsTest, ATargetThatNobodyAsksForIsForgotten) {
  OutcomeCounts counts;
  const std::int64_t long_ago = unix_ns() - OutcomeCounts::kShownFor - 1;
  counts.continue_row("dump", "job:web", 4, long_ago);
  EXPECT_EQ(series_of(counts), kFromTheBeginning);
  counts.refused("dump", "in-use", "job:web", unix_ns());
  EXPECT_EQ(series_of(counts).back(), "kymo_refused_in_a_row{dump,job:web} 1");
}

}  // namespace
}  // namespace kymo::daemon
