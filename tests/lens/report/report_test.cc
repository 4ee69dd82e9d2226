// The complete text and JSON reports of a recording that is made by hand.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lens/analysis/summary.h"
#include "lens/analysis/temp_folder.h"
#include "lens/report/golden.h"
#include "lens/report/json_report.h"
#include "lens/report/text_report.h"

namespace kymo::report {
namespace {

constexpr const char* kMetadata = R"({"format_version":1,"state":"ended","interval_ns":20000000,
 "start_unix_ns":1795251436363364903,"host":"db3","kernel":"Linux 6.18.44","pid":4711,
 "columns":[
  {"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"},
  {"name":"t_us","metric":"t_us","kind":"counter","unit":"microseconds"},
  {"name":"calls[ok]","metric":"calls","kind":"counter","unit":"count","fields":{"result":"ok"}},
  {"name":"phase","metric":"phase","kind":"gauge","unit":"count"}],
 "stats":{"ticks_due":6,"rows_captured":4,"rows_written":4,"missed_late":2,
  "timing_error_ns":400000,"timing_error_max_ns":250000,"sample_window_max_ns":800},
 "marks":[{"name":"freeze","at_ns":20000000},{"name":"write","at_ns":40000000}],
 "about":{"job":"churn-1","request":"dump","leave_running":true,"image_bytes":12582912,
  "target":{"pid":100,"command":["sleep","9"]},
  "steps":[{"name":"freeze","duration_ns":1500},{"name":"write","duration_ns":20000000}],
  "stats":{"frozen_time_us":1500,"pages_written":3072}}})";

class Report : public ::testing::Test {
 protected:
  Report() {
    path_ = folder_.file("run.tsv",
                         "Time (ns)\tn_bytes\tt_us\tcalls[ok]\tphase\n0\t0\t0\t7\t1\n"
                         "20000000\t0\t1500\t7\t2\n40000000\t8388608\t1500\t7\t1\n"
                         "100000000\t12582912\t1500\t7\t0\n120000000\t125");
    static_cast<void>(folder_.file("run.meta.json", kMetadata));
    static_cast<void>(folder_.file(
        "run.gaps.tsv", "Start (ns)\tEnd (ns)\tTicks\tCause\n60000000\t100000000\t2\tlate\n"));
  }
  analysis::Summary summary() {
    auto summary = analysis::summarize(path_);
    EXPECT_TRUE(summary.ok());
    return std::move(*summary);
  }

  tests::TempFolder folder_;
  std::string path_;
};

// Removes the folder of the recording, which changes from run to run.
std::string named_report(analysis::Summary summary) {
  std::string& path = summary.recording.path;
  path.erase(0, path.rfind('/') + 1);
  return text_report(summary);
}

TEST_F(Report, TextIsAsExpectedToTheLetter) {
  tests::expect_golden(named_report(summary()), "report.txt");
}

TEST_F(Report, CallbacksThatHaveThrownAreAWarning) {
  const std::string path = folder_.file("gauges.tsv", "Time (ns)\tqueued\n0\t3\n1000000\t3\n");
  static_cast<void>(folder_.file("gauges.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,
      "columns":[{"name":"queued","metric":"queued","kind":"gauge","unit":"count"}],
      "stats":{"ticks_due":2,"rows_captured":2,"rows_written":2},
      "callback_errors":[{"metric":"queued","count":12,"what":"no \u001b[31mqueue"}, 7,
      {"metric":"queued","count":1,"what":"18446744073709551611, which is -5","negative":true}]})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("quality     warning: the callback of queued has thrown 12 times (last: no "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("): its columns kept their last values meanwhile\n"), std::string::npos);
  EXPECT_NE(text.find("warning: values of queued are probably negative: they were 2^63 or more 1 "
                      "time (last: 18446744073709551611, which is -5)\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "a control code reached the report";
  EXPECT_EQ(text.find("no problem was found"), std::string::npos);
}

TEST_F(Report, AHistogramHasOneLine) {
  const std::string path = folder_.file(
      "waits.tsv",
      "Time (ns)\twait_us[0-64]\twait_us[65-128]\twait_us[129-inf]\twait_us_sum\twait_us_count\tn\n"
      "0\t1\t0\t0\t10\t1\t0\n1000000\t51\t50\t0\t6410\t101\t9\n");
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("\nHISTOGRAM  values   mean       p50     p90     p99        max\n"
                      "wait_us       100  64 µs  <= 64 µs  115 µs  127 µs  <= 128 µs\n"
                      "before      values that came before the first row, and are in no figure: "
                      "wait_us 1\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("wait_us["), std::string::npos) << text;
  EXPECT_EQ(text.find("wait_us_"), std::string::npos) << text;
  const nlohmann::json json =
      json_report({*analysis::summarize(path)})["recordings"][0]["histograms"];
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["metric"], "wait_us");
  EXPECT_EQ(json[0]["p50"], 64.0);
  EXPECT_EQ(json[0]["max"], 128);
  EXPECT_EQ(json[0]["values_before"], 1);
}

TEST_F(Report, AHistogramShowsValuesAboveItsLastBound) {
  const std::string path =
      folder_.file("waits.tsv",
                   "Time (ns)\twait_us[0-64]\twait_us[65-inf]\twait_us_sum\twait_us_count\n"
                   "0\t0\t0\t0\t0\n1000000\t1\t9\t9000\t10\n");
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("> 64 µs\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("before "), std::string::npos) << "nothing was";
  // Before, p50 was shown as 65 µs, as if it were known.
  EXPECT_NE(text.find("wait_us        10  900 µs  > 64 µs  > 64 µs  > 64 µs  > 64 µs\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          "quality     warning: 90.00 % of the values of wait_us are above its highest bound (64)"),
      std::string::npos)
      << text;
}

// Before, the mean was 1.8e13 s, and the quality good.
TEST_F(Report, ANumberBelowZeroThatWasRecordedIsAWarning) {
  const std::string path =
      folder_.file("waits.tsv",
                   "Time (ns)\twait_us[0-64]\twait_us[65-inf]\twait_us_sum\twait_us_count\tn\n"
                   "0\t0\t0\t0\t0\t9\n1000000\t0\t1\t18446744073709551609\t1\t2\n");
  static_cast<void>(folder_.file("waits.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,
      "columns":[{"name":"n","metric":"n","kind":"counter","unit":"count"}],
      "stats":{"ticks_due":2,"rows_captured":2,"rows_written":2}})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("warning: the counter wait_us_sum was 2^63 or more: a number below zero "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("warning: the counter n goes back: a number below zero "), std::string::npos)
      << text;
  EXPECT_EQ(text.find("no problem was found"), std::string::npos);
}

// Before, the advice was a lower rate or a core, which does not help.
TEST_F(Report, TicksThatASlowCallbackCostNeedAnotherAdvice) {
  const std::string path = folder_.file("slow.tsv", "Time (ns)\tn\n0\t0\n2001000000\t3\n");
  static_cast<void>(folder_.file("slow.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,"columns":[{"name":"n","metric":"n","kind":"counter","unit":"count"}],
      "stats":{"ticks_due":2002,"rows_captured":2,"rows_written":2,"missed_late":2000,
      "late_sample":1990,"timing_error_p999_ns":9}})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("left a row: samples took too long, probably because a callback"),
            std::string::npos)
      << text;
}

TEST_F(Report, RowsThatTheMetadataCountAndTheFileDoesNotHaveAreSaid) {
  const auto reported = [this](const char* name, const char* rows, int due = 4) {
    const std::string path = folder_.file(std::string(name) + ".tsv", rows);
    static_cast<void>(folder_.file(std::string(name) + ".meta.json",
                                   R"({"format_version":1,"state":"ended",
        "interval_ns":1000000,"columns":[{"name":"n","metric":"n","kind":"counter","unit":"count"}],
        "stats":{"rows_captured":4,"rows_written":4,"ticks_due":)" +
                                       std::to_string(due) + R"(,"missed_late":)" +
                                       std::to_string(due - 4) + "}}"));
    return named_report(*analysis::summarize(path));
  };
  const std::string cut = reported("cut", "Time (ns)\tn\n0\t0\n1000000\t3\n");
  EXPECT_NE(cut.find("captured    2 of 4 ticks (50.00 %), 2 more were recorded and are not in the "
                     "file\n"),
            std::string::npos)
      << cut;
  EXPECT_NE(cut.find("quality     bad: its metadata count 4 rows, and the file holds 2: it was cut "
                     "off, changed or damaged after it was recorded, and no figure includes the "
                     "rows that are gone\n"),
            std::string::npos)
      << cut;
  EXPECT_EQ(cut.find("lower the rate"), std::string::npos) << "the recorder lost nothing";
  // Before, it said "captured 25.00 %" and "only 50.00 % of the ticks left a row".
  const std::string both = reported("both", "Time (ns)\tn\n0\t0\n1000000\t3\n", 8);
  EXPECT_NE(both.find("captured    2 of 8 ticks (25.00 %)"), std::string::npos) << both;
  EXPECT_NE(both.find("4 ticks never left a row: the collector ran late"), std::string::npos)
      << both;
  const std::string other =
      reported("other", "Time (ns)\tn\n0\t0\n1000000\t3\n2000000\t3\n3000000\t3\n4000000\t3\n");
  EXPECT_NE(other.find("quality     warning: its metadata count 4 rows, and the file holds 5: the "
                       "metadata are probably those of another recording"),
            std::string::npos)
      << other;
}

TEST_F(Report, OfARecordingThatCouldNotBeFinishedMoreMayBeMissing) {
  const auto reported = [this](const char* stats, const char* gaps) {
    const std::string path = folder_.file("failed.tsv", "Time (ns)\tn\n0\t0\n1000000\t3\n");
    static_cast<void>(folder_.file("failed.gaps.tsv",
                                   std::string("Start (ns)\tEnd (ns)\tTicks\tCause\n") + gaps));
    static_cast<void>(
        folder_.file("failed.meta.json",
                     std::string(R"({"format_version":1,"state":"failed","interval_ns":1000000,
        "columns":[{"name":"n","metric":"n","kind":"counter","unit":"count"}],"stats":)") +
                         stats + "}"));
    return named_report(*analysis::summarize(path));
  };
  const auto says = [&](const std::string& text, const std::string& captured) {
    EXPECT_NE(text.find("captured    " + captured + "\n"), std::string::npos) << text;
  };
  constexpr const char* kOld = R"({"ticks_due":2,"rows_captured":2,"rows_written":2})";
  says(reported(R"({"ticks_due":0})", ""), "2 of at least 2 ticks (at most 100.00 %)");
  says(reported(kOld, ""), "2 of at least 2 ticks (at most 100.00 %)");
  says(reported(kOld, "2000000\t8000000\t6\tsink_error\n"),
       "2 of at least 8 ticks (at most 25.00 %), 6 missed: sink_error");
  says(reported(R"({"ticks_due":4,"rows_written":2,"missed_late":2})",
                "2000000\t8000000\t6\tsink_error\n"),
       "2 of at least 10 ticks (at most 20.00 %), 2 missed: late, 6 missed: sink_error");
}

TEST_F(Report, TimingPercentilesAndThePriceOfPrecisionWereNotShown) {
  const std::string path =
      folder_.file("precise.tsv", "Time (ns)\tn_bytes\n0\t0\n1000000\t0\n2000000\t0\n");
  static_cast<void>(folder_.file("precise.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,"pace":"precise","max_spin_share":0.15,
      "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}],
      "stats":{"ticks_due":4,"rows_captured":3,"rows_on_time":2,"rows_written":3,"missed_late":1,
      "timing_error_ns":60000,"timing_error_p50_ns":16,"timing_error_p99_ns":60000,
      "timing_error_p999_ns":60000,"timing_error_max_ns":60100,"spin_ns":480000,
      "wakeup_latency_ns":280300,"duration_ns":4000000}})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("half at most 16 ns, 99 % 60 µs, 99.9 % 60 µs"), std::string::npos) << text;
  EXPECT_NE(text.find("50.00 % of the ticks sampled within half an interval"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("precise: spun 12.00 % of the time, allowed 15.00 %; wake-ups here take up to "
                "280 µs: a max spin share of 0.29 would keep the time"),
      std::string::npos)
      << text;
}

TEST_F(Report, WhyTicksWereLateWasNotSaid) {
  const std::string path =
      folder_.file("busy.tsv", "Time (ns)\tn_bytes\n0\t0\n1000000\t0\n2000000\t0\n");
  static_cast<void>(folder_.file("busy.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,
      "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}],
      "stats":{"ticks_due":23,"rows_captured":3,"rows_on_time":2,"rows_written":3,"missed_late":20,
      "late_waited":11,"late_sample":4,"late_stolen":2,"late_page_fault":1,
      "timing_error_ns":6000,"timing_error_p50_ns":16,"timing_error_p99_ns":6000,
      "timing_error_p999_ns":6000,"timing_error_max_ns":6010,"duration_ns":23000000}})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(
      text.find("20 missed: late\n            late: 11 waited for a CPU, 4 sample before took "
                "too long, 2 stolen by the hypervisor, 1 page fault, 2 unexplained\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("6.01 µs at most, of the ticks that were captured;"), std::string::npos)
      << text;
}

TEST_F(Report, AnEmptyRecordingWasCapturedWhole) {
  const std::string path = folder_.file("empty.tsv", "Time (ns)\tn_bytes\n");
  static_cast<void>(folder_.file("empty.gaps.tsv", "Start (ns)\tEnd (ns)\tTicks\tCause\n"));
  static_cast<void>(folder_.file("empty.meta.json", R"({"format_version":1,"state":"running",
      "interval_ns":1000000,
      "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}]})"));
  const std::string text = named_report(*analysis::summarize(path));
  EXPECT_NE(text.find("captured    nothing: no tick was counted before it ended\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("100.00 %"), std::string::npos) << text;
}

// Percentiles are upper bounds of buckets.
TEST_F(Report, NoTimingPercentileLiesAboveTheLargestError) {
  const std::string path = folder_.file("late.tsv", "Time (ns)\tn_bytes\n0\t0\n1000000\t0\n");
  static_cast<void>(folder_.file("late.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,
      "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}],
      "stats":{"ticks_due":2,"rows_captured":2,"rows_on_time":2,"rows_written":2,
      "timing_error_ns":700,"timing_error_p50_ns":144,"timing_error_p99_ns":590,
      "timing_error_p999_ns":590,"timing_error_max_ns":573}})"));
  const analysis::Summary late = *analysis::summarize(path);
  const std::string text = text_report(late);
  EXPECT_NE(text.find("half at most 144 ns, 99 % 573 ns, 99.9 % 573 ns, 573 ns at most"),
            std::string::npos)
      << text;
  const nlohmann::json stats = json_report({late})["recordings"][0]["recorder"];
  EXPECT_EQ(stats["timing_error_p50_ns"], 144);
  EXPECT_EQ(stats["timing_error_p999_ns"], 573);
}

TEST_F(Report, SpinningWithoutASleepWasNotShown) {
  const auto with_pace = [&](const std::string& name, const std::string& pace) {
    const std::string path =
        folder_.file(name + ".tsv", "Time (ns)\tn_bytes\n0\t0\n40000\t0\n80000\t0\n");
    static_cast<void>(folder_.file(name + ".meta.json", R"({"format_version":1,"state":"ended",
        "interval_ns":40000,"max_spin_share":1,"pace":")" + pace +
                                                            R"(",
        "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}],
        "stats":{"ticks_due":3,"rows_captured":3,"rows_written":3,"spin_ns":60000,
        "duration_ns":120000}})"));
    return named_report(*analysis::summarize(path));
  };
  const std::string precise = with_pace("precise", "precise");
  EXPECT_NE(precise.find("precise: spun 50.00 % of the time, allowed 100.00 %\n"),
            std::string::npos)
      << precise;
  const std::string thrifty = with_pace("thrifty", "thrifty");
  EXPECT_NE(thrifty.find("thrifty: spun 50.00 % of the time (the interval is below 200 µs)"),
            std::string::npos)
      << thrifty;
}

// A recording to which every warning of the report applies.
TEST_F(Report, EveryFindingSaysWhatToDoAboutIt) {
  std::string rows = "Time (ns)\tn_bytes\n";
  for (int row = 0; row < 200; ++row) {
    if (row == 50) rows += "junk\n";
    const int ms = row < 100 ? row : row + 300;  // leaves out 300 ms, which is a gap
    rows += std::to_string(ms) + "000000\t" + std::to_string(row * row) + "\n";
  }
  const std::string path = folder_.file("poor.tsv", rows);
  static_cast<void>(folder_.file("poor.meta.json", R"({"format_version":1,"state":"ended",
      "interval_ns":1000000,"host":"db3","kernel":"Linux 6.18.44","pid":4711,
      "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"}],
      "stats":{"ticks_due":500,"rows_captured":200,"rows_written":200,"missed_ring_full":300,
      "backoffs":9,"backoff_ns":290000000,"duration_ns":500000000,"timing_error_ns":60000000,
      "timing_error_max_ns":900000}})"));
  static_cast<void>(
      folder_.file("poor.gaps.tsv",
                   "Start (ns)\tEnd (ns)\tTicks\tCause\n100000000\t400000000\t300\tring_full\n"));
  auto poor = analysis::summarize(path);
  ASSERT_TRUE(poor.ok());
  tests::expect_golden(named_report(*poor), "report_poor.txt");
}

TEST_F(Report, ExactTextHasValuesAsRecorded) {
  const std::string text = text_report(summary(), {.exact = true});
  EXPECT_NE(text.find("12582912  125829120.000"), std::string::npos) << text;
}

TEST_F(Report, JsonHasStableKeysAndExactValues) {
  const auto json = json_report({summary()});
  const auto& run = json["recordings"][0];
  std::string keys;
  for (const auto& [key, value] : run.items()) {
    keys += key + " ";
  }
  EXPECT_EQ(
      keys,
      "path rows first_ns last_ns duration_ns rate_window_ns capture quality state about host "
      "kernel pid clock interval_ns start_unix_ns start_monotonic_ns recorder finish phases "
      "columns histograms "
      "gaps left_out left_out_lines notes ");
  EXPECT_EQ(run["columns"][0]["last"], 12'582'912);
  EXPECT_EQ(run["columns"][2]["fields"]["result"], "ok");
  EXPECT_FALSE(run["columns"][3].contains("delta"));
  EXPECT_EQ(run["phases"][1]["end_ns"], 100'000'000);
  EXPECT_EQ(run["left_out"][0]["first_line"], 6);
  EXPECT_EQ(run["gaps"][0]["cause"], "late");
  EXPECT_EQ(run["columns"][0]["rate_percentiles"]["p90"], 8'388'608 * 50.0);
  EXPECT_TRUE(run["columns"][0]["rate_percentiles"]["exact"]);
  EXPECT_EQ(run["columns"][0]["busiest"]["begin_ns"], 20'000'000);
  EXPECT_FALSE(run["columns"][3].contains("busiest"));
}

TEST_F(Report, WhatCouldNotBeSeenInsideIsNamed) {
  static_cast<void>(folder_.file("run.meta.json", R"({"format_version":1,"state":"ended",
      "about":{"request":"dump","inside":{"missing":["the disk: none", 7]}}})"));
  EXPECT_NE(text_report(summary()).find("\nnot seen    the disk: none\n"), std::string::npos)
      << text_report(summary());
  static_cast<void>(folder_.file("run.meta.json", R"({"format_version":1,"state":"ended",
      "about":{"inside":{"missing":"all"}}})"));
  EXPECT_EQ(text_report(summary()).find("not seen"), std::string::npos);
}

TEST_F(Report, HostileNamesAreShownAsText) {
  const std::string path = folder_.file("evil.tsv", "Time (ns)\t\x1b[2J\xff'`\n1\t1\n2\t2\n");
  auto evil = analysis::summarize(path);
  ASSERT_TRUE(evil.ok());
  EXPECT_EQ(text_report(*evil).find('\x1b'), std::string::npos);
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  EXPECT_NO_THROW(static_cast<void>(json_report({*evil}).dump(2, ' ', false, replace)));
}

}  // namespace
}  // namespace kymo::report
