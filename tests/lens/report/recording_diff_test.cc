// The complete text of comparisons of recordings that are made by hand.
#include "lens/report/recording_diff.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lens/analysis/temp_folder.h"
#include "lens/report/golden.h"

namespace kymo::report {
namespace {

constexpr const char* kColumns = R"("columns":[
  {"name":"written_bytes","metric":"written_bytes","kind":"counter","unit":"bytes"},
  {"name":"calls[read]","metric":"calls","kind":"counter","unit":"count"},
  {"name":"resident_bytes","metric":"resident_bytes","kind":"gauge","unit":"bytes"},
  {"name":"frozen_time_us","metric":"frozen_time_us","kind":"counter","unit":"microseconds"},
  {"name":"threads","metric":"threads","kind":"gauge","unit":"count"},
  {"name":"profiler_backoffs","metric":"profiler_backoffs","kind":"counter","unit":"count"}])";

class RecordingDiffReport : public ::testing::Test {
 protected:
  struct Run {
    std::string name;
    unsigned bytes_a_row = 4096;
    unsigned post_dump_ms = 900;
    unsigned resident_mib = 100;
    std::string marks_more = {};
    const char* first_column = "written_bytes";
    std::string metadata_more = {};
    const char* state = "ended";
    std::uint64_t rows = 1000;
    std::uint64_t reset_at = 0;  // the row at which the bytes begin again with 0; 0: none
  };

  // A pseudo-random number. The sequence is the same in each run.
  unsigned drawn(unsigned below) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<unsigned>(state_ >> 33U) % below;
  }

  std::string record(const Run& run) {
    std::string text = std::string("Time (ns)\t") + run.first_column +
                       "\tcalls[read]\tresident_bytes\tfrozen_time_us\tthreads\t"
                       "profiler_backoffs\n";
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0;
    for (std::uint64_t row = 0; row < run.rows; ++row) {
      if (row != 0 && row == run.reset_at) bytes = 0;
      bytes += run.bytes_a_row + drawn(1000);
      calls += drawn(20);
      const std::uint64_t frozen = row < run.post_dump_ms ? 0 : run.post_dump_ms * 1000;
      for (const std::uint64_t value :
           {row * 1'000'000, bytes, calls, std::uint64_t{run.resident_mib} << 20U, frozen,
            std::uint64_t{4}}) {
        text += std::to_string(value) + "\t";
      }
      text += std::to_string(row) + "\n";
    }
    const auto mark = [](const char* name, unsigned ms) {
      return std::string(R"({"name":")") + name + R"(","at_ns":)" + std::to_string(ms) + "000000}";
    };
    static_cast<void>(folder_.file(
        run.name + ".meta.json", std::string(R"({"format_version":1,"state":")") + run.state +
                                     R"(","interval_ns":1000000,)" + run.metadata_more + kColumns +
                                     R"(,"marks":[)" + mark("pre-dump", 50) + "," +
                                     mark("post-dump", run.post_dump_ms) + run.marks_more + "," +
                                     mark("request ended", 980) + "]}"));
    return folder_.file(run.name + ".tsv", text);
  }

  static analysis::RecordingDiff diff(const std::vector<std::string>& before,
                                      const std::vector<std::string>& after,
                                      const analysis::DiffOptions& options = {}) {
    auto made = analysis::diff_recordings(before, after, options);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  tests::TempFolder folder_;
  std::uint64_t state_ = 1;
};

// Removes the folders of the recordings, which change from run to run.
void name_only(std::vector<analysis::DiffRun>& runs) {
  for (analysis::DiffRun& run : runs) {
    std::string& path = run.summary.recording.path;
    path.erase(0, path.rfind('/') + 1);
  }
}

std::string named_diff(analysis::RecordingDiff diff, std::optional<double> allowed) {
  name_only(diff.before);
  name_only(diff.after);
  return text_of(diff, 20, allowed);
}

TEST_F(RecordingDiffReport, TwoRecordingsAsText) {
  const std::string before = record({.name = "old"});
  const std::string after = record({.name = "new",
                                    .bytes_a_row = 5120,
                                    .post_dump_ms = 700,
                                    .resident_mib = 101,
                                    .marks_more = R"(,{"name":"retry","at_ns":950000000})"});
  tests::expect_golden(named_diff(diff({before}, {after}), 0.1), "diff_two.txt");
}

TEST_F(RecordingDiffReport, TwoSetsAsText) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (unsigned i = 0; i < 8; ++i) {
    before.push_back(record({.name = "old-" + std::to_string(i),
                             .bytes_a_row = 4000 + drawn(200),
                             .post_dump_ms = 895 + drawn(10)}));
    after.push_back(record({.name = "new-" + std::to_string(i),
                            .bytes_a_row = 4000 + drawn(200),
                            .post_dump_ms = 695 + drawn(10)}));
  }
  tests::expect_golden(named_diff(diff(before, after), {}), "diff_sets.txt");
}

TEST_F(RecordingDiffReport, TooFewRunsToTellIsNoPassAndSaysHowManyRunsItTakes) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const char* name : {"1", "2", "3", "4"}) {
    before.push_back(record({std::string("a") + name}));
    after.push_back(record({std::string("b") + name, 4096 * 40}));
  }
  const analysis::RecordingDiff all = diff(before, after);
  const ChangeCheck check = check_change(all, 0.1);
  EXPECT_EQ(check.outcome(), ChangeCheck::Outcome::cannot_tell);
  const std::string text = text_of(all, 20, 0.1);
  EXPECT_NE(text.find("CANNOT TELL whether a metric changed beyond noise and beyond 10 %: "
                      "written_bytes\n  It takes about 5 recordings of each side (here 4 and 4), "
                      "or fewer for a single metric: --metric NAME"),
            std::string::npos)
      << text;
  const nlohmann::json json = json_of(all, 0.1)["fail_on_change"];
  EXPECT_EQ(json["outcome"], "cannot tell");
  EXPECT_EQ(json["cannot_tell"], nlohmann::json::array({"written_bytes"}));
  EXPECT_EQ(json["runs_needed"], 5);
  // If only this metric is tested, four runs are enough.
  const ChangeCheck one = check_change(diff(before, after, {.metrics = {"written_bytes"}}), 0.1);
  EXPECT_EQ(one.outcome(), ChangeCheck::Outcome::changed);
}

TEST_F(RecordingDiffReport, AnImprovementIsNoIncrease) {
  std::vector<std::string> little;
  std::vector<std::string> much;
  for (const char* name : {"1", "2", "3", "4"}) {
    little.push_back(record({std::string("a") + name}));
    much.push_back(record({std::string("b") + name, 4096 * 40}));
  }
  const analysis::RecordingDiff worse = diff(little, much, {.metrics = {"written_bytes"}});
  const analysis::RecordingDiff better = diff(much, little, {.metrics = {"written_bytes"}});
  const AllowedChange increase(0.1, true);
  EXPECT_EQ(check_change(better, 0.1).outcome(), ChangeCheck::Outcome::changed);
  EXPECT_EQ(check_change(better, increase).outcome(), ChangeCheck::Outcome::no_change);
  EXPECT_EQ(check_change(worse, increase).outcome(), ChangeCheck::Outcome::changed);
  EXPECT_NE(text_of(worse, 20, increase).find("beyond +10 %"), std::string::npos);
  const nlohmann::json fell = json_of(better, increase);
  EXPECT_EQ(fell["fail_on_change"]["only_increases"], true);
  EXPECT_EQ(fell["metrics"][0]["verdict"], "changed");
  EXPECT_EQ(fell["fail_on_change"]["outcome"], "no increase");
  EXPECT_NE(text_of(better, 20, increase).find("\nno increase beyond +10 %: "), std::string::npos);
  EXPECT_EQ(json_of(better, 0.9999)["fail_on_change"]["outcome"], "no change");
}

TEST_F(RecordingDiffReport, ABrokenRecordingIsNeverBetter) {
  struct Case {
    const char* reason;
    Run run;
  };
  const auto with = [](const char* name, const std::string& more) {
    return Run{.name = name, .bytes_a_row = 1000, .metadata_more = more};
  };
  const std::string failed_gauge =
      R"("callback_errors":[{"metric":"resident_bytes","count":9,"what":"no"}],)";
  const Case cases[] = {
      {"could not finish it", {.name = "failed", .state = "failed"}},
      {"unfinished: ",
       {.name = "killed", .metadata_more = R"("pid":4194303,)", .state = "running"}},
      {"the file holds 990",
       {.name = "cut",
        .metadata_more = R"("stats":{"rows_written":1000,"ticks_due":1000},)",
        .rows = 990}},
      {"40 rows were lost: rows could not be kept",
       with("full", R"("stats":{"rows_written":1000,"ticks_due":1040,"missed_sink_error":40},)")},
      {"1 row was lost: the ring was full",
       with("ring", R"("stats":{"rows_written":1000,"ticks_due":1001,"missed_ring_full":1},)")},
      {"the callback of resident_bytes has thrown 9 times", with("throws", failed_gauge)},
      {"the counter \"written_bytes\" goes back once", {.name = "reset", .reset_at = 500}},
      {"the rows after are in", with("part", R"("part":{"number":1,"next":"none.2.tsv"},)")},
  };
  const auto four_of = [this](const Run& run) {
    std::vector<std::string> paths;
    for (const char* number : {"-1", "-2", "-3", "-4"}) {
      Run one = run;
      one.name += number;
      paths.push_back(record(one));
    }
    return paths;
  };
  const std::string whole = record({.name = "whole"});
  const std::vector<std::string> wholes = four_of({.name = "wholes"});
  for (const Case& one : cases) {
    const std::vector<std::string> paths = four_of(one.run);
    const std::string& path = paths.front();
    for (const auto& made : {diff({whole}, {path}), diff(paths, wholes)}) {
      EXPECT_EQ(check_change(made, 0.5).outcome(), ChangeCheck::Outcome::cannot_tell) << one.reason;
      const std::string text = text_of(made, 20, 0.5);
      EXPECT_NE(text.find(std::string("  ") + path + ": "), std::string::npos) << text;
      EXPECT_NE(text.find(one.reason), std::string::npos) << text;
      EXPECT_FALSE(json_of(made, 0.5)["fail_on_change"]["broken"].empty());
    }
  }
  // The gauge that failed is not compared.
  const std::string path = record(with("other", failed_gauge));
  const auto other = diff({whole}, {path}, {.metrics = {"threads"}});
  EXPECT_EQ(check_change(other, 0.5).outcome(), ChangeCheck::Outcome::no_change);
}

TEST_F(RecordingDiffReport, NoDecreaseIsMoreThanAHundredPercent) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const unsigned bytes : {100U, 200U, 300U, 50'000U, 90'000U}) {
    before.push_back(record({.name = "a" + std::to_string(bytes), .bytes_a_row = bytes}));
    after.push_back(record({.name = "b" + std::to_string(bytes), .bytes_a_row = 0}));
  }
  const analysis::RecordingDiff made = diff(before, after, {.metrics = {"written_bytes"}});
  const analysis::MetricDiff& metric = made.metrics.front();
  EXPECT_LT(metric.shift.low, 0);
  EXPECT_GE(metric.shift.low, -*metric.before);
  EXPECT_GE(metric.shift.median, metric.shift.low);
}

TEST_F(RecordingDiffReport, WhatTellsNothingIsOnlyCounted) {
  analysis::RecordingDiff made = diff({record({.name = "old"})}, {record({.name = "new"})});
  analysis::MetricDiff seldom;
  seldom.name = "seldom";
  seldom.before = 1;
  seldom.after = 0;
  seldom.reason = "too few events: it moves in 1 of 16 and 0 of 20 blocks";
  seldom.tells_nothing = true;
  made.metrics.push_back(seldom);
  const std::string text = text_of(made, 20, {});
  EXPECT_EQ(text.find("too few events: it moves in 1 of 16"), std::string::npos) << text;
  // frozen_time_us grew only once in each recording, by the same amount.
  EXPECT_NE(text.find("2 metrics move too seldom to be tested (-v lists them)"), std::string::npos)
      << text;
  EXPECT_NE(text_of(made, 20, {}, true).find("too few events: it moves in 1 of 16"),
            std::string::npos);
}

TEST_F(RecordingDiffReport, ALargeDifferenceThatCannotBeTestedIsShownWithItsReason) {
  analysis::RecordingDiff made = diff({record({.name = "old"})}, {record({.name = "new"})});
  analysis::MetricDiff slower;
  slower.name = "requests";
  slower.kind = Kind::counter;
  slower.before = 1000;
  slower.after = 750;
  slower.reason = "too few independent values: 3 and 3 of 10";
  slower.dependent = true;
  made.metrics.push_back(slower);
  analysis::MetricDiff little = slower;
  little.name = "little";
  little.after = 990;
  little.tells_nothing = true;
  made.metrics.push_back(little);
  const std::string text = text_of(made, 20, {});
  EXPECT_NE(text.find("-25.0 %  too few independent values: 3 and 3 of 10"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("\nlittle "), std::string::npos) << text;
  EXPECT_NE(text.find("1 metric that differs little has too few independent values to be tested "
                      "(-v lists it)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 metric moves too seldom to be tested (-v lists it)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("nothing changed beyond noise; 5 could not be tested"), std::string::npos)
      << text;
}

TEST_F(RecordingDiffReport, JsonHasWhatTheTextHasExactly) {
  const std::string before = record({.name = "old"});
  const std::string after = record({.name = "new", .bytes_a_row = 5120});
  const analysis::RecordingDiff made = diff({before}, {after});
  const nlohmann::json json = json_of(made, 0.1);
  EXPECT_EQ(json["test"], "Mann-Whitney");
  EXPECT_EQ(json["correction"], "Holm");
  EXPECT_EQ(json["a"][0]["path"], before);
  EXPECT_EQ(json["aligned_at"], "pre-dump");
  EXPECT_EQ(json["metrics"].size(), made.metrics.size());
  const nlohmann::json& first = json["metrics"][0];
  EXPECT_EQ(first["name"], "written_bytes");
  EXPECT_EQ(first["verdict"], "changed");
  EXPECT_EQ(first["what"], "rate per second");
  EXPECT_NEAR(first["share"].get<double>(), 1024.0 / (4096 + 499.5), 0.01);
  EXPECT_LT(first["shift_low"], first["median_shift"]);
  EXPECT_TRUE(json["fail_on_change"]["failed"]);
  EXPECT_EQ(json["fail_on_change"]["metrics"], nlohmann::json({"written_bytes"}));
  EXPECT_FALSE(json_of(made, 0.3)["fail_on_change"]["failed"]);
}

TEST_F(RecordingDiffReport, TheRecordersOwnMetricsAreComparedOnlyWhereTheyAreAskedFor) {
  const std::string path = record({.name = "old"});
  EXPECT_EQ(text_of(diff({path}, {path}), 20, {}).find("profiler_backoffs"), std::string::npos);
  const auto asked = diff({path}, {path}, {.metrics = {"profiler_backoffs"}});
  EXPECT_NE(text_of(asked, 20, {}).find("profiler_backoffs"), std::string::npos);
}

TEST_F(RecordingDiffReport, HostileNamesAreShownAsText) {
  const std::string before = record({.name = "old", .first_column = "\x1b[2J'`"});
  const std::string after = record({.name = "new"});
  const analysis::RecordingDiff made = diff({before}, {after});
  EXPECT_EQ(text_of(made, 20, {}).find('\x1b'), std::string::npos);
  const auto replace = nlohmann::json::error_handler_t::replace;
  EXPECT_NO_THROW(static_cast<void>(json_of(made, {}).dump(2, ' ', false, replace)));
}

}  // namespace
}  // namespace kymo::report
