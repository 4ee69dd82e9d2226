#include "lens/report/history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace kymo::report {
namespace {

constexpr std::uint64_t kMilli = 1'000'000;

HistoryRun one(std::uint64_t duration_ms, std::uint64_t writing_ms = 0) {
  HistoryRun run;
  run.duration_ns = duration_ms * kMilli;
  run.image_bytes = 64U << 20U;
  run.stood_still_ns = run.duration_ns / 2;
  run.warmth = "warm";
  run.phases = {{"criu starts", 5 * kMilli},
                {"memory, writing", (writing_ms != 0 ? writing_ms : duration_ms / 2) * kMilli}};
  return run;
}

// `count` runs that take about `ms` milliseconds, with a deviation of up to 5 %.
std::vector<HistoryRun> about(std::size_t count, double ms, std::uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(1, 0.03);
  std::vector<HistoryRun> runs;
  for (std::size_t i = 0; i < count; ++i) {
    runs.push_back(one(static_cast<std::uint64_t>(ms * normal(random))));
  }
  return runs;
}

std::vector<HistoryRun> numbered(std::vector<HistoryRun> runs,
                                 const std::vector<HistoryRun>& more = {}) {
  runs.insert(runs.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].checkpoint = "c" + std::to_string(i);
    runs[i].created_unix_ns = static_cast<std::int64_t>(i) * 60'000'000'000;
  }
  return runs;
}

HistoryOptions allowing(double share) {
  HistoryOptions options;
  options.allowed_regression = share;
  return options;
}

TEST(HistoryTest, AStepIsFoundWithWhatMovedThere) {
  const History history = analyse_history(numbered(about(12, 400), about(10, 600, 8)), {});
  ASSERT_EQ(history.changes.size(), 1U);
  const HistoryChange& change = history.changes[0];
  EXPECT_EQ(change.found.at, 12U);
  EXPECT_TRUE(change.worse);
  EXPECT_NEAR(change.ratio, 1.5, 0.05);
  ASSERT_FALSE(change.phases.empty());
  EXPECT_EQ(change.phases[0].name, "memory, writing");
  EXPECT_NEAR(change.phases[0].after / change.phases[0].before, 1.5, 0.1);
  const std::string text = text_of(history, "web: dumps", 5);
  EXPECT_NE(text.find("duration got worse with c12"), std::string::npos) << text;
  EXPECT_NE(text.find("the best cut of 22 runs in two: z = 3.96, p = 0.0001"), std::string::npos)
      << text;
  EXPECT_NE(text.find("            ^\n"), std::string::npos) << text;
  EXPECT_NE(text.find("and 17 older ones"), std::string::npos) << text;
}

// The machine became busy with c8, and the images larger with c12. Of the images it was said that they did so with c8.
TEST(HistoryTest, WhatChangedWithAnotherRunIsDatedByItself) {
  std::vector<HistoryRun> runs = numbered(about(8, 400), about(12, 760, 8));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].image_bytes = i < 12 ? 48 << 20 : 100 << 20;
    runs[i].phases[0].second = (i < 12 ? 20 : 200) * kMilli + i;
  }
  const History history = analyse_history(runs, {});
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(history.changes[0].found.at, 8U);
  const std::string text = text_of(history, "web: dumps", 5);
  for (const char* const name : {"    bytes ", "    criu starts "}) {
    const std::size_t row = text.find(name);
    ASSERT_NE(row, std::string::npos) << text;
    EXPECT_NE(text.substr(row, text.find('\n', row) - row).find("with c12"), std::string::npos)
        << text;
  }
  EXPECT_EQ(text.find("with c8", text.find("WHAT MOVED")), std::string::npos) << text;
  const nlohmann::json json = json_of(history);
  for (const nlohmann::json& metric : json["changes"][0]["metrics"]) {
    const bool of_the_images = metric["name"] == "bytes" || metric["name"] == "throughput";
    EXPECT_EQ(metric.contains("at"), of_the_images) << metric;
  }
}

TEST(HistoryTest, AChangeSaysFirstWhichPhaseMadeItAndWhatCriuDidThen) {
  std::vector<HistoryRun> runs;
  for (std::size_t i = 0; i < 20; ++i) {
    const std::uint64_t slower = i < 10 ? 0 : 690 * kMilli;
    HistoryRun run;
    run.checkpoint = "c" + std::to_string(i);
    run.duration_ns = 400 * kMilli + (i % 3) * kMilli + slower;
    run.phases = {{"memory: writing pages", 300 * kMilli + slower},
                  {"freeze", 2 * kMilli},
                  {"CRIU: waited for a CPU", 12 * kMilli + slower / 2},
                  {"CRIU: waited for the disk", 5 * kMilli}};
    runs.push_back(std::move(run));
  }
  History history = analyse_history(runs, {});
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(
      history.changes[0].because,
      (std::vector<std::string>{"Most of it: memory: writing pages, 990 ms after 300 ms (+690 ms).",
                                "CRIU waited for a CPU for 357 ms after 12 ms (+345 ms)."}));
  // Of a streamed dump, kymod waits for the disk, not CRIU.
  for (HistoryRun& run : runs) {
    const std::uint64_t waited = run.duration_ns > 1000 * kMilli ? 500 * kMilli : 0;
    run.phases.emplace_back("kymod: waited for the disk", waited);
  }
  EXPECT_EQ(analyse_history(runs, {}).changes[0].because[1],
            "kymod waited for the disk for 500 ms after 0 ns (+500 ms).");
  runs.front().phases.pop_back();  // a run of an older kymod, which did not say it
  EXPECT_EQ(analyse_history(runs, {}).changes[0].because[1],
            "CRIU waited for a CPU for 357 ms after 12 ms (+345 ms).");
  const std::string text = text_of(history, "web: dumps", 5);
  EXPECT_NE(text.find("    Most of it: memory: writing pages"), std::string::npos) << text;
  EXPECT_EQ(json_of(history)["changes"][0]["because"].size(), 2U);
  EXPECT_FALSE(json_of(history)["runs"][0]["phases_ns"].contains("CRIU: waited for a CPU"));
  // Runs of an older kymod do not have these states. The report must then not mention them.
  runs.front().phases.resize(2);
  history = analyse_history(runs, {});
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(history.changes[0].because.size(), 1U);
}

TEST(HistoryTest, ADriftIsReportedAsADrift) {
  std::vector<HistoryRun> runs;
  for (std::size_t i = 0; i < 30; ++i) {
    const std::vector<HistoryRun> next = about(1, 400 + 15.0 * static_cast<double>(i), i);
    runs.push_back(next[0]);
  }
  const History history = analyse_history(numbered(runs), {});
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_TRUE(history.changes[0].found.drift);
  EXPECT_NE(text_of(history, "web", 5).find("duration drifts, and got worse"), std::string::npos);
}

TEST(HistoryTest, NoiseAndAnOutlierAreNoChange) {
  std::vector<HistoryRun> runs = about(20, 400);
  runs[10] = one(4000);
  const History history = analyse_history(numbered(runs), allowing(0.2));
  EXPECT_TRUE(history.changes.empty());
  EXPECT_FALSE(history.verdict->regression);
  EXPECT_NE(text_of(history, "web", 5).find("no change"), std::string::npos);
}

TEST(HistoryTest, TwoRunsAreTooFewAndItIsSaid) {
  const History history = analyse_history(numbered({one(400), one(900)}), allowing(0.2));
  EXPECT_TRUE(history.changes.empty());
  EXPECT_FALSE(history.verdict->regression);
  const std::string text = text_of(history, "web", 5);
  EXPECT_NE(text.find("too few runs to tell a change: 2 of the 8"), std::string::npos) << text;
  EXPECT_NE(text.find("too few runs to tell a regression"), std::string::npos) << text;
  EXPECT_EQ(json_of(history)["regression"]["enough_runs"], false);
}

TEST(HistoryTest, NoRunsAtAllCanBeShown) {
  const History history = analyse_history({}, allowing(0.2));
  EXPECT_FALSE(text_of(history, "web", 5).empty());
  EXPECT_TRUE(json_of(history)["runs"].empty());
}

TEST(HistoryTest, TheNewestIsARegressionBeyondTheShareAndTheNoise) {
  EXPECT_TRUE(
      analyse_history(numbered(about(10, 400), {one(520)}), allowing(0.2)).verdict->regression);
  EXPECT_FALSE(
      analyse_history(numbered(about(10, 400), {one(470)}), allowing(0.2)).verdict->regression)
      << "17 % worse, 20 allowed";
  EXPECT_FALSE(
      analyse_history(numbered(about(10, 400), {one(200)}), allowing(0.2)).verdict->regression)
      << "better";
}

TEST(HistoryTest, WhereNoiseIsLargeAFifthIsNoRegression) {
  std::vector<HistoryRun> runs;
  for (const std::uint64_t ms : {200U, 900U, 400U, 700U, 300U, 800U, 500U, 520U}) {
    runs.push_back(one(ms));
  }
  const History history = analyse_history(numbered(runs, {one(700)}), allowing(0.2));
  EXPECT_GT(history.verdict->worse_by, 0.2);
  EXPECT_FALSE(history.verdict->regression);
}

// It said "got worse" and "no regression" of the same runs, and a build passed.
TEST(HistoryTest, ARegressionWithinTheNoiseWasSaidToBeNone) {
  std::vector<HistoryRun> runs = about(8, 400);
  for (const std::uint64_t ms :
       {900U, 2100U, 500U, 2000U, 1000U, 700U, 3000U, 1200U, 600U, 2500U}) {
    runs.push_back(one(ms));
  }
  const History history = analyse_history(numbered(runs, {one(1200)}), allowing(0.2));
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_TRUE(history.changes[0].worse);
  EXPECT_GT(history.verdict->noise, history.verdict->worse_by);
  EXPECT_FALSE(history.verdict->regression);
  EXPECT_TRUE(history.verdict->too_noisy);
  const std::string text = text_of(history, "web", 5);
  EXPECT_EQ(text.find("no regression"), std::string::npos) << text;
  EXPECT_NE(text.find("TOO NOISY TO TELL a regression: duration 1.2"), std::string::npos) << text;
  EXPECT_NE(text.find("--newest 5"), std::string::npos) << text;
  EXPECT_EQ(json_of(history)["regression"]["too_noisy"], true);
  // A newest run that is better than the median was no regression, however large the noise was.
  EXPECT_TRUE(analyse_history(numbered(runs, {one(600)}), allowing(0.2)).verdict->too_noisy);
  EXPECT_FALSE(analyse_history(numbered(runs, {one(600)}), allowing(60)).verdict->too_noisy);
}

// Noisy runs before an improvement hid that the newest were seven times as slow as those right after it.
TEST(HistoryTest, TheNewestIsHeldToTheLevelSinceTheLastStep) {
  std::vector<HistoryRun> runs;
  for (const std::uint64_t ms :
       {1150U, 4900U, 2100U, 1300U, 9000U, 1900U, 37U, 28U, 33U, 131U, 188U}) {
    runs.push_back(one(ms));
  }
  const History history = analyse_history(numbered(runs, {one(278)}), allowing(0.2));
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_FALSE(history.changes[0].worse);
  EXPECT_EQ(history.verdict->baseline, 5U);
  EXPECT_TRUE(history.verdict->regression);
  const std::string text = text_of(history, "web", 5);
  EXPECT_NE(text.find("REGRESSION: duration 278 ms, median of 5 before since c6 37"),
            std::string::npos)
      << text;
  EXPECT_EQ(json_of(history)["regression"]["since_run"], 6);
  // One run fewer, and nothing can be told of the level since.
  runs.pop_back();
  const History few = analyse_history(numbered(runs, {one(278)}), allowing(0.2));
  ASSERT_EQ(few.changes.size(), 1U);
  EXPECT_EQ(few.verdict->baseline, 0U);
  EXPECT_NE(text_of(few, "web", 5).find("5 or more before it since c6"), std::string::npos);
}

TEST(HistoryTest, ARegressionStaysOneUntilItsLevelIsKnown) {
  const auto after = [](std::size_t slower) {
    return analyse_history(numbered(about(12, 400), about(slower, 600, 8)), allowing(0.2));
  };
  for (const std::size_t slower : {1U, 3U, 4U, 5U}) {
    EXPECT_TRUE(after(slower).verdict->regression) << slower;
  }
  EXPECT_EQ(after(4).verdict->baseline, 12U);
  EXPECT_FALSE(after(6).verdict->regression) << "there are five runs of the new level before it";
}

TEST(HistoryTest, OneSlowRunOfTheThreeNewestIsNoRegression) {
  HistoryOptions options = allowing(0.2);
  options.newest = 3;
  EXPECT_FALSE(analyse_history(numbered(about(10, 400), {one(400), one(900), one(410)}), options)
                   .verdict->regression);
  EXPECT_TRUE(analyse_history(numbered(about(10, 400), {one(600), one(900), one(590)}), options)
                  .verdict->regression);
}

TEST(HistoryTest, LowerThroughputIsWorse) {
  HistoryOptions options = allowing(0.2);
  options.metric = HistoryMetric::throughput;
  EXPECT_TRUE(analyse_history(numbered(about(10, 400), {one(800)}), options).verdict->regression);
  EXPECT_FALSE(analyse_history(numbered(about(10, 400), {one(200)}), options).verdict->regression);
}

TEST(HistoryTest, ColdFailedAndOtherwiseToldRunsAreNotHeldAgainstTheNewest) {
  std::vector<HistoryRun> runs = about(10, 400);
  runs[0].warmth = "cold: the first since kymod started";
  runs[0].duration_ns *= 10;
  runs[3].error = "criu said no";
  runs[5].conditions = "leave running";
  const History history = analyse_history(numbered(runs), {});
  EXPECT_EQ(history.compared, (std::vector<std::size_t>{1, 2, 4, 6, 7, 8, 9}));
  const std::string text = text_of(history, "web", 20);
  EXPECT_NE(text.find("10 runs, 7 compared by duration, 1 failed, 2 unlike the newest"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("failed: criu said no"), std::string::npos) << text;
  EXPECT_NE(text.find("cold: the first since kymod started"), std::string::npos) << text;
}

TEST(HistoryTest, ColdRunsAreComparedWithColdOnes) {
  std::vector<HistoryRun> runs = about(12, 400);
  const std::vector<std::size_t> cold{0, 2, 4, 6, 8, 11};
  for (const std::size_t i : cold) runs[i].warmth = "cold: the first since kymod started";
  EXPECT_EQ(analyse_history(numbered(runs), {}).compared, cold);
}

// As the first dump after a restart of kymod.
TEST(HistoryTest, AColdRunDoesNotHideWhatIsKnownOfTheWarmOnes) {
  std::vector<HistoryRun> runs = numbered(about(20, 400), about(9, 800, 8));
  runs.push_back(one(900));
  runs.back().warmth = "cold: the first since kymod started";
  const History history = analyse_history(runs, allowing(0.2));
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_TRUE(history.changes[0].worse);
  EXPECT_EQ(history.compared.back(), runs.size() - 2);
  const std::string text = text_of(history, "web", 20);
  EXPECT_NE(text.find("the newest was cold and is left out"), std::string::npos) << text;

  runs.back().warmth = "warm";
  EXPECT_FALSE(analyse_history(runs, {}).newest_left_out);
}

TEST(HistoryTest, TheSlowestRunsAreInTheTable) {
  std::vector<HistoryRun> runs;
  for (int i = 1; i <= 101; ++i) runs.push_back(one(static_cast<std::uint64_t>(i)));
  const nlohmann::json level = json_of(analyse_history(numbered(runs), {}))["levels"]["duration"];
  EXPECT_EQ(level["median"], 51 * kMilli);
  EXPECT_EQ(level["p95"], 96 * kMilli);
  EXPECT_EQ(level["p99"], 100 * kMilli);
}

TEST(HistoryTest, JsonHasRunsLevelsChangesAndVerdict) {
  const nlohmann::json json =
      json_of(analyse_history(numbered(about(12, 400), about(10, 600, 8)), allowing(0.2)));
  EXPECT_EQ(json["runs"].size(), 22U);
  EXPECT_EQ(json["runs"][0]["phases_ns"]["criu starts"], 5 * kMilli);
  EXPECT_EQ(json["compared"].size(), 22U);
  EXPECT_EQ(json["levels"]["bytes"]["median"], 64U << 20U);
  EXPECT_EQ(json["changes"][0]["test"], "maximally selected Mann-Whitney");
  EXPECT_EQ(json["changes"][0]["kind"], "step");
  EXPECT_EQ(json["changes"][0]["checkpoint"], "c12");
  EXPECT_EQ(json["regression"]["baseline_runs"], 9);
}

}  // namespace
}  // namespace kymo::report
