// The three answers of --fail-on-change and --fail-on-increase, and how often they are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/sanitizers.h"
#include "lens/analysis/diff_tests.h"
#include "lens/analysis/histogram_runs.h"
#include "lens/report/recording_diff.h"

namespace kymo::report {
namespace {

using Outcome = ChangeCheck::Outcome;
using Values = std::vector<double>;

// The comparison of one metric between sets, with these values of the runs.
analysis::RecordingDiff compared(const Values& before, const Values& after) {
  analysis::MetricDiff metric;
  metric.name = "tree_cpu_ns total";
  metric.total = true;
  metric.before = before[before.size() / 2];
  metric.after = after[after.size() / 2];
  analysis::test_runs(before, after, 0, metric);
  analysis::RecordingDiff diff;
  diff.by_runs = true;
  diff.metrics.push_back(std::move(metric));
  diff.tested = analysis::correct(diff.metrics, true);
  diff.runs_needed = analysis::runs_needed(1);
  diff.before.resize(before.size());
  diff.after.resize(after.size());
  return diff;
}

Outcome outcome(const Values& before, const Values& after, const AllowedChange& allowed) {
  const analysis::RecordingDiff diff = compared(before, after);
  return check_change(diff, allowed).outcome();
}

TEST(ChangeCheck, ARegressionBehindOneSlowRunIsNotPassed) {
  const Values before{400, 405, 410, 520};
  const Values after{500, 505, 510, 515};
  const AllowedChange limit(0.1, true);
  const analysis::RecordingDiff diff = compared(before, after);
  EXPECT_EQ(check_change(diff, limit).outcome(), Outcome::cannot_tell);
  const std::string text = text_of(diff, 20, limit);
  EXPECT_NE(text.find("LIMIT +10 %"), std::string::npos) << text;
  EXPECT_NE(text.find("-4.9 to +28.0 %  not decided: about "), std::string::npos) << text;
  EXPECT_NE(text.find("recordings of each side (here 4 and 4)"), std::string::npos) << text;
  const auto needed = runs_to_decide(diff.metrics[0], diff, limit);
  ASSERT_TRUE(needed);
  EXPECT_GT(*needed, 4U);
}

TEST(ChangeCheck, TheWholeIntervalDecides) {
  const Values before{100, 101, 102, 103};
  const Values same{100, 101, 102, 103};
  const Values more{150, 151, 152, 153};
  const AllowedChange both(0.1);
  const AllowedChange increase(0.1, true);
  EXPECT_EQ(outcome(before, same, both), Outcome::no_change);
  EXPECT_EQ(outcome(before, more, both), Outcome::changed);
  EXPECT_EQ(outcome(before, more, increase), Outcome::changed);
  EXPECT_EQ(outcome(more, before, both), Outcome::changed);
  EXPECT_EQ(outcome(more, before, increase), Outcome::no_change);
  EXPECT_EQ(outcome(before, {109, 110, 111, 112}, both), Outcome::cannot_tell);
  EXPECT_EQ(outcome(before, same, 0.01), Outcome::cannot_tell);
  // Three runs have no interval.
  EXPECT_EQ(outcome({100, 101, 102}, {100, 101, 103}, both), Outcome::cannot_tell);
  EXPECT_EQ(outcome({100, 101, 102}, {50, 51, 52}, increase), Outcome::cannot_tell);
  EXPECT_EQ(outcome({100, 100, 100}, {100, 100, 100}, both), Outcome::cannot_tell);
  EXPECT_EQ(outcome({100, 100, 100, 100}, {100, 100, 100, 100}, both), Outcome::no_change);
  EXPECT_EQ(check_change({}, both).outcome(), Outcome::cannot_tell);
}

// Sets of six runs whose waits are between 400 and 600 us. 1.1 % of those of B are slow instead.
class QuantileCheck : public analysis::HistogramDiffTest {
 protected:
  struct Slow {
    std::uint64_t us = 0;
    int from_run = 0;
  };

  analysis::RecordingDiff slower(const Slow& slow, std::uint64_t per_doubling,
                                 const analysis::DiffOptions& options = {}) {
    std::vector<std::string> before;
    std::vector<std::string> after;
    Shape shape{.rows = 2000, .longest = 600, .shortest = 400, .per_doubling = per_doubling};
    for (int run = 0; run < 6; ++run) {
      const std::string name = std::to_string(slow.us) + '-' + std::to_string(run);
      shape.slow_rows = 0;
      before.push_back(record("a" + name, shape));
      shape.slow = slow.us;
      shape.slow_rows = run < slow.from_run ? 0 : 22;
      after.push_back(record("b" + name, shape));
    }
    analysis::RecordingDiff made = diff(before, after, options);
    made.broken.clear();  // they have no metadata
    return made;
  }

  static std::vector<std::string> names(const std::vector<const analysis::MetricDiff*>& metrics) {
    std::vector<std::string> all;
    for (const analysis::MetricDiff* metric : metrics) all.push_back(metric->name);
    std::sort(all.begin(), all.end());
    return all;
  }

  const AllowedChange limit_{0.2, true};
};
using Names = std::vector<std::string>;

// It passed, because the mean hardly rose.
TEST_F(QuantileCheck, AQuantileThatRoseAboveTheLastBucketIsNotPassed) {
  for (const int first_slow : {0, 2, 4}) {
    const analysis::RecordingDiff made = slower({9000, first_slow}, 8);
    const ChangeCheck check = check_change(made, limit_);
    EXPECT_EQ(names(check.undecided), Names{"wait_us p99"}) << first_slow;
    EXPECT_EQ(check.outcome(), Outcome::cannot_tell);
    const std::string text = text_of(made, 20, limit_);
    const bool most = first_slow < 4;
    EXPECT_EQ(text.find("> 4.10 ms  ") != std::string::npos, most) << text;
    EXPECT_NE(text.find("not decided: above the last bucket"), std::string::npos) << text;
  }
}

TEST_F(QuantileCheck, AQuantileThatChangedByMoreThanItsBucketsTellIsNotPassed) {
  EXPECT_EQ(names(check_change(slower({1100}, 1), limit_).undecided), Names{"wait_us p99"});
  EXPECT_EQ(names(check_change(slower({3000}, 1), limit_).changed), Names{"wait_us p99"});
}

TEST_F(QuantileCheck, WhatIsNotJudgedIsNamed) {
  const analysis::RecordingDiff made = slower({1000}, 1);
  const ChangeCheck check = check_change(made, limit_);
  EXPECT_EQ(check.outcome(), Outcome::no_change);
  EXPECT_EQ(names(check.not_judged), (Names{"wait_us p50", "wait_us p90", "wait_us p99"}));
  const std::string text = text_of(made, 20, limit_);
  EXPECT_NE(text.find("no increase beyond +20 %: the whole interval of each metric that was judged "
                      "is within\n  Not judged, because one bucket that is wider than the limit "
                      "holds it (per_doubling makes narrower ones): wait_us p"),
            std::string::npos)
      << text;
  const nlohmann::json json = json_of(made, limit_)["fail_on_change"];
  ASSERT_EQ(json["not_judged"].size(), 3U);
  EXPECT_EQ(json["not_judged"][0]["name"], check.not_judged[0]->name);
  EXPECT_NE(json["not_judged"][0]["reason"].get<std::string>().find("bucket"), std::string::npos);
  // Who asks for it by name is told.
  const analysis::RecordingDiff asked = slower({1000}, 1, {.metrics = {"wait_us p99"}});
  EXPECT_EQ(names(check_change(asked, limit_).undecided), Names{"wait_us p99"});
  // With buckets that are narrower than the limit, it is found.
  EXPECT_EQ(names(check_change(slower({1000}, 8), limit_).changed), Names{"wait_us p99"});
}

// It said that as many runs as there were would decide.
TEST_F(QuantileCheck, MoreRunsDoNotMakeBucketsNarrower) {
  const analysis::RecordingDiff made = slower({1100}, 1, {.metrics = {"wait_us p99"}});
  EXPECT_FALSE(runs_to_decide(made.metrics[0], made, limit_));
  EXPECT_TRUE(json_of(made, limit_)["fail_on_change"]["runs_needed"].is_null());
  const std::string text = text_of(made, 20, limit_);
  EXPECT_NE(text.find("not decided: its buckets are too wide"), std::string::npos) << text;
  EXPECT_EQ(text.find("recordings of each side"), std::string::npos) << text;
}

TEST(ChangeCheck, OnlyRecordingsOfDifferentLengthsCanBeComparedUpToATime) {
  analysis::RecordingDiff made = compared({400, 405, 410, 520}, {500, 505, 510, 515});
  const auto advised = [&] {
    return text_of(made, 20, AllowedChange(0.1, true)).find("--to SECONDS") != std::string::npos;
  };
  EXPECT_FALSE(advised());
  made.lengths_differ = true;
  EXPECT_TRUE(advised());
}

enum class Noise { normal, lognormal, outliers, one_sided_outlier, exponential };
constexpr const char* kNoises[] = {"normal", "log-normal", "one run in ten is 30 % slower",
                                   "one run of A is 30 % slower", "exponential"};

class Process {
 public:
  Values runs(Noise noise, double spread, double level, bool is_before) {
    Values values;
    for (int i = 0; i < 4; ++i) values.push_back(level * one(noise, spread, is_before && i == 0));
    return values;
  }

 private:
  double one(Noise noise, double spread, bool first_of_a) {
    switch (noise) {
      case Noise::normal:
        return std::max(0.05, 1 + spread * normal_(random_));
      case Noise::lognormal:
        return std::exp(spread * normal_(random_));
      case Noise::outliers:
        return std::exp(spread * normal_(random_)) * (uniform_(random_) < 0.1 ? 1.3 : 1);
      case Noise::one_sided_outlier:
        return std::exp(spread * normal_(random_)) * (first_of_a ? 1.3 : 1);
      case Noise::exponential:
        break;
    }
    return 1 - spread * std::log(1 - uniform_(random_));
  }

  std::mt19937_64 random_{50};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

// Prints the table of docs/diff.md, which has the rows of normal noise. The changes that are most
// often misjudged lie just beside the limit.
TEST(ChangeCheck, IsWrongInAtMostFiveOfAHundred) {
  constexpr int kDraws = KYMO_SANITIZER ? 500 : 2000;
  const AllowedChange limit(0.1, true);
  Process process;
  const auto share = [&](Noise noise, double spread, double change, Outcome asked) {
    int found = 0;
    for (int i = 0; i < kDraws; ++i) {
      const Values before = process.runs(noise, spread, 1, true);
      const Values after = process.runs(noise, spread, 1 + change, false);
      if (outcome(before, after, limit) == asked) ++found;
    }
    return 100.0 * found / kDraws;
  };
  for (const Noise noise : {Noise::normal, Noise::lognormal, Noise::outliers,
                            Noise::one_sided_outlier, Noise::exponential}) {
    for (const double spread : {0.02, 0.05, 0.1, 0.2}) {
      const double false_pass = share(noise, spread, 0.1001, Outcome::no_change);
      const double false_fail = share(noise, spread, 0.0999, Outcome::changed);
      const double pass = share(noise, spread, 0, Outcome::no_change);
      const double fail = share(noise, spread, 0.3, Outcome::changed);
      std::printf("| %s | %g %% | %.1f | %.1f | %.0f | %.0f |\n", kNoises[static_cast<int>(noise)],
                  spread * 100, false_pass, false_fail, pass, fail);
      EXPECT_LE(false_pass, 5);
      EXPECT_LE(false_fail, 5);
    }
  }
}

}  // namespace
}  // namespace kymo::report
