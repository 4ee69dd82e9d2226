// How kymo diff compares histograms: by their quantiles.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "histogram_runs.h"
#include "lens/analysis/quantile_blocks.h"

namespace kymo::analysis {
namespace {

using DiffVerdict = MetricDiff::Verdict;

std::vector<std::string> names(const RecordingDiff& diff) {
  std::vector<std::string> names;
  for (const MetricDiff& metric : diff.metrics) names.push_back(metric.name);
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

// Before, each of its buckets was compared by its rate: a line for each, and none for the
// histogram.
TEST_F(HistogramDiffTest, OfAHistogramTheQuantilesAreCompared) {
  const RecordingDiff made = diff({record("before", {.values_a_row = 20})},
                                  {record("after", {.values_a_row = 20, .longest = 1200})});
  EXPECT_EQ(names(made), (Names{"calls", "wait_us mean", "wait_us p50", "wait_us p90",
                                "wait_us p99", "wait_us_count"}));
  EXPECT_EQ(metric(made, "wait_us mean").verdict, DiffVerdict::changed);
  EXPECT_NEAR(*metric(made, "wait_us mean").share(), 0.2, 0.03);
  for (const auto& [name, before] :
       {std::pair("wait_us p50", 500.0), {"wait_us p90", 900.0}, {"wait_us p99", 990.0}}) {
    const MetricDiff& quantile = metric(made, name);
    EXPECT_EQ(quantile.verdict, DiffVerdict::changed) << name << ": " << quantile.reason;
    EXPECT_TRUE(quantile.quantile);
    EXPECT_EQ(quantile.unit, Unit::microseconds);
    EXPECT_NEAR(*quantile.before, before, 30) << name;
    EXPECT_NEAR(*quantile.share(), 0.2, 0.06) << name;
  }
  EXPECT_NE(metric(made, "wait_us_count").verdict, DiffVerdict::changed);
}

// Of few values, a high quantile is lower than of many. So the pieces of time that are compared
// must have about as many values on both sides.
TEST_F(HistogramDiffTest, MoreOfTheSameValuesAreNoOtherQuantiles) {
  const RecordingDiff made =
      diff({record("before", {.values_a_row = 20})}, {record("after", {.values_a_row = 100})});
  for (const char* name : {"wait_us p50", "wait_us p90", "wait_us p99"}) {
    const MetricDiff& quantile = metric(made, name);
    EXPECT_EQ(quantile.verdict, DiffVerdict::none) << name << ": " << quantile.reason;
    EXPECT_NEAR(*quantile.share(), 0, 0.05) << name;
  }
  EXPECT_NEAR(*metric(made, "wait_us_count").share(), 4, 0.01);
}

TEST_F(HistogramDiffTest, TheSameValuesTwiceSeldomAlarm) {
  constexpr int kPairs = 40;
  int alarms = 0;
  int tested = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const RecordingDiff made =
        diff({record("before", {.rows = 1500, .values_a_row = 50})},
             {record("after", {.rows = 1500, .values_a_row = 50})},
             {.margin = 0.0, .metrics = {"wait_us p50", "wait_us p90", "wait_us p99"}});
    bool alarm = false;
    for (const MetricDiff& metric : made.metrics) {
      tested += metric.samples_before != 0 ? 1 : 0;
      alarm = alarm || metric.verdict == DiffVerdict::changed;
    }
    alarms += alarm ? 1 : 0;
  }
  // A set of tests may give a false alarm once in 20. The 5 are more than three standard
  // deviations.
  EXPECT_LE(alarms, kPairs / 20 + 5);
  EXPECT_GT(tested, kPairs * 2) << "of three for each pair";
}

TEST_F(HistogramDiffTest, TooFewValuesAreNotTold) {
  const RecordingDiff made =
      diff({record("before", {.rows = 1900})}, {record("after", {.rows = 1900, .longest = 2000})});
  const MetricDiff& high = metric(made, "wait_us p99");
  EXPECT_EQ(high.verdict, DiffVerdict::not_told);
  EXPECT_EQ(high.reason, "too few values: 1 and 1 of 10 blocks of 1000 values");
  EXPECT_NEAR(*high.share(), 1, 0.2) << "how far they differ is still shown";
  EXPECT_EQ(metric(made, "wait_us p50").verdict, DiffVerdict::changed);
}

TEST_F(HistogramDiffTest, OfSetsEachRunIsOneValue) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (int run = 0; run < 5; ++run) {
    before.push_back(record("before-" + std::to_string(run), {.rows = 600}));
    after.push_back(record("after-" + std::to_string(run), {.rows = 600, .longest = 1500}));
  }
  const RecordingDiff made = diff(before, after, {.metrics = {"wait_us p99"}});
  ASSERT_EQ(names(made), Names{"wait_us p99"});
  EXPECT_EQ(made.metrics[0].verdict, DiffVerdict::changed);
  EXPECT_EQ(made.metrics[0].samples_before, 5U);
  EXPECT_NEAR(*made.metrics[0].share(), 0.5, 0.05);
}

TEST_F(HistogramDiffTest, WhatStaysInItsBucketIsFoundByTheMean) {
  const auto runs = [&](const std::string& name, double from, double to) {
    std::vector<std::string> paths;
    for (int run = 0; run < 6; ++run) {
      paths.push_back(record(name + std::to_string(run),
                             {.rows = 200, .longest = to, .shortest = from, .per_doubling = 1}));
    }
    return paths;
  };
  const RecordingDiff inside = diff(runs("a", 68, 73), runs("b", 117, 123));
  EXPECT_EQ(metric(inside, "wait_us mean").verdict, DiffVerdict::changed);
  EXPECT_NEAR(*metric(inside, "wait_us mean").share(), 0.71, 0.03);
  const MetricDiff& p50 = metric(inside, "wait_us p50");
  EXPECT_EQ(p50.verdict, DiffVerdict::none);
  EXPECT_TRUE(p50.one_bucket);
  EXPECT_LE(p50.shift.low, -63) << "no interval is narrower than the bucket";
  EXPECT_GE(p50.shift.high, 63);

  const RecordingDiff above = diff(runs("c", 5000, 5300), runs("d", 23000, 24000));
  EXPECT_EQ(metric(above, "wait_us mean").verdict, DiffVerdict::changed);
  const MetricDiff& p99 = metric(above, "wait_us p99");
  EXPECT_EQ(p99.verdict, DiffVerdict::not_told);
  EXPECT_EQ(p99.reason,
            "above the last bucket in A and B: see its mean, or give the histogram a higher last "
            "bound");
  EXPECT_FALSE(p99.share());
  const MetricDiff half = metric(diff(runs("e", 68, 73), runs("f", 5000, 5300)), "wait_us p99");
  EXPECT_EQ(half.verdict, DiffVerdict::not_told);
  EXPECT_EQ(half.above_last, (std::array<bool, 2>{false, true}));
}

// One run in the bucket below was enough for "changed", with an interval of -95 % to +95 %.
TEST_F(HistogramDiffTest, WhatItsBucketsDoNotTellHasNotChangedBeyondNoise) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (int run = 0; run < 6; ++run) {
    const std::string number = std::to_string(run);
    const double to = run == 0 ? 127 : 150;
    before.push_back(
        record("a" + number, {.rows = 200, .longest = to, .shortest = 100, .per_doubling = 1}));
    after.push_back(
        record("b" + number, {.rows = 200, .longest = 250, .shortest = 130, .per_doubling = 1}));
  }
  const RecordingDiff found = diff(before, after);
  const MetricDiff& p90 = metric(found, "wait_us p90");
  EXPECT_EQ(p90.verdict, DiffVerdict::not_told);
  EXPECT_EQ(p90.reason, "its buckets are wider than the change: see its mean");
  EXPECT_EQ(metric(found, "wait_us mean").verdict, DiffVerdict::changed);
}

// All values are at one edge of their bucket, and then at the nearest edge of the next.
TEST_F(HistogramDiffTest, TheIntervalOfAQuantileHoldsWhatItsBucketsCanHide) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (int run = 0; run < 6; ++run) {
    const std::string number = std::to_string(run);
    before.push_back(
        record("a" + number, {.rows = 200, .longest = 128, .shortest = 127, .per_doubling = 1}));
    after.push_back(
        record("b" + number, {.rows = 200, .longest = 130, .shortest = 129, .per_doubling = 1}));
  }
  const MetricDiff p50 = metric(diff(before, after), "wait_us p50");
  EXPECT_EQ(p50.shift.low, 1);
  EXPECT_EQ(p50.shift.high, 256 - 65);
}

TEST_F(HistogramDiffTest, AHistogramWithoutAValueIsLeftOutAndOnOneSideIsSaid) {
  const std::string empty = record("empty", {.values_a_row = 0});
  EXPECT_EQ(names(diff({empty}, {record("none", {.values_a_row = 0})})),
            (Names{"calls", "wait_us_count"}));
  const RecordingDiff made = diff({empty}, {record("some", {})});
  EXPECT_EQ(metric(made, "wait_us p50").verdict, DiffVerdict::one_sided);
}

TEST_F(HistogramDiffTest, AQuantileAHistogramOrABucketCanBeAskedFor) {
  const std::string before = record("before", {.rows = 100});
  const std::string after = record("after", {.rows = 100});
  const auto asked = [&](const std::string& name) {
    return names(diff({before}, {after}, {.metrics = {name}}));
  };
  EXPECT_EQ(asked("wait_us p90"), Names{"wait_us p90"});
  EXPECT_EQ(asked("wait_us"), (Names{"wait_us mean", "wait_us p50", "wait_us p90", "wait_us p99"}));
  EXPECT_EQ(asked("wait_us mean"), Names{"wait_us mean"});
  EXPECT_EQ(asked("wait_us[0-64]"), Names{"wait_us[0-64]"});
  EXPECT_EQ(asked("wait_us_sum"), Names{"wait_us_sum"});
  const auto refused = diff_recordings({before}, {after}, {.metrics = {"wait_us p98"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no recording has it"), std::string::npos);
  EXPECT_NE(refused.error().message.find("did you mean wait_us p9"), std::string::npos)
      << refused.error().message;
}

// Before, a folder with the parts of one recording was compared as if each were a run, and nothing
// said so.
TEST_F(HistogramDiffTest, ThePartsOfARecordingAreSaidToBeComparedAsRuns) {
  const std::string before = record("before", {.rows = 100});
  const std::string after = record("after", {.rows = 100});
  static_cast<void>(folder_.file("after.meta.json",
                                 R"({"format_version":1,"state":"ended",
                                     "part":{"number":0,"next":"after.1.tsv"}})"));
  const RecordingDiff made = diff({before}, {after});
  EXPECT_TRUE(std::any_of(made.notes.begin(), made.notes.end(), [&](const std::string& note) {
    return note ==
           after +
               ": it is only part 0 of a longer recording: the rows after are in "
               "\"after.1.tsv\" (which is not there any more); it is compared as a run of its own";
  }));
}

TEST(QuantileBlocks, APieceHasAsManyValuesAsItsQuantileNeeds) {
  EXPECT_EQ(values_needed(0.5), 20U);
  EXPECT_EQ(values_needed(0.99), 1000U);
  HistogramBlocks histogram;
  histogram.columns.buckets = {0, 1};
  histogram.columns.bounds = {100};
  histogram.blocks = {{10, 0}, {0, 0}, {10, 0}, {0, 25}, {19, 0}};
  // The first three blocks are one piece, the fourth is one by itself, and the fifth has too few.
  EXPECT_EQ(quantiles_of_pieces(histogram, 0.5), (std::vector<double>{100, 101}))
      << "in the first bucket: not above its bound";
}

}  // namespace
}  // namespace kymo::analysis
