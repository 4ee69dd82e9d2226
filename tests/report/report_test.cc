// The text and JSON reports of one hand-made recording, to the letter.

#include <gtest/gtest.h>

#include <string>

#include "analysis/summary.h"
#include "analysis/temp_folder.h"
#include "report/json_report.h"
#include "report/text_report.h"

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

constexpr const char* kText =
    R"(about       image bytes 12 MiB, job churn-1, leave running yes, request dump
stats       frozen time 1.50 ms, pages written 3072
steps       freeze 1.50 µs, write 20 ms
target      command sleep 9, pid 100
state       ended
started     2026-11-21 08:57:16.363 UTC on db3, Linux 6.18.44, process 4711
length      100 ms, 4 rows of 4 columns, one every 20 ms
captured    4 of 6 ticks (66.67 %), 2 missed: late
timing      100 µs late on average, 250 µs at most; longest sample 800 ns
quality     bad: only 66.67 % of the ticks left a row: the collector ran late: lower the rate, or give it a core
quality     warning: 1 line could not be read

PHASE, from mark to mark   begins  lasts   share
freeze                    0.020 s  20 ms  20.0 %
write                     0.040 s  60 ms  60.0 %

COUNTER  first     last    delta  mean rate  highest in 20 ms       at
n_bytes    0 B   12 MiB   12 MiB  120 MiB/s         400 MiB/s  0.020 s
t_us      0 ns  1.50 ms  1.50 ms    15 ms/s           75 ms/s  0.000 s

GAUGE  first  last  lowest  highest  mean
phase      1     0       0        2     1

idle        1 column never changed: calls[ok] = 7

GAP (1 longest of 1)   begins  lasts  ticks
late                  0.060 s  40 ms      2

left out    line 6: cut short: the file ends in the middle of this row
)";

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

TEST_F(Report, TextIsAsExpectedToTheLetter) {
  EXPECT_EQ(text_report(summary()), "recording   " + path_ + "\n" + kText);
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
      "kernel pid clock interval_ns start_unix_ns start_monotonic_ns recorder phases columns "
      "gaps left_out left_out_lines notes ");
  EXPECT_EQ(run["columns"][0]["last"], 12'582'912);
  EXPECT_EQ(run["columns"][2]["fields"]["result"], "ok");
  EXPECT_FALSE(run["columns"][3].contains("delta"));
  EXPECT_EQ(run["phases"][1]["end_ns"], 100'000'000);
  EXPECT_EQ(run["left_out"][0]["first_line"], 6);
  EXPECT_EQ(run["gaps"][0]["cause"], "late");
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
