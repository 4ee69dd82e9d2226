#include "lens/analysis/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "lens/analysis/block_values.h"
#include "lens/analysis/quality.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

constexpr const char* kGapsHeader = "Start (ns)\tEnd (ns)\tTicks\tCause\n";

// Metadata with a counter `bytes` and a gauge `level`.
std::string metadata(const std::string& stats, const std::string& version = "1") {
  return R"({"format_version":)" + version + R"(,"state":"ended","interval_ns":1000000,
    "columns":[{"name":"n_bytes","metric":"n_bytes","kind":"counter","unit":"bytes"},
               {"name":"level","metric":"level","kind":"gauge","unit":"count"}],
    "stats":{)" +
         stats + "}}";
}

bool has_note(const Summary& summary, const std::string& part) {
  const auto& notes = summary.recording.notes;
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != note.npos; });
}

Summary summarize_ok(const std::string& path) {
  auto summary = summarize(path);
  EXPECT_TRUE(summary.ok()) << (summary.ok() ? "" : summary.error().message);
  return summary.ok() ? std::move(*summary) : Summary{};
}

// Before, a report of the first part of a rotated recording did not say that there are more.
TEST(Summary, APartOfALongerRecordingIsSaid) {
  const tests::TempFolder folder;
  const auto note = [&](const std::string& part) {
    static_cast<void>(folder.file(
        "a.meta.json",
        R"({"format_version":1,"state":"ended","columns":[{"name":"n","metric":"n","kind":"counter"}],
           "part":)" +
            part + "}"));
    static_cast<void>(folder.file("a.gaps.tsv", kGapsHeader));
    for (const char* beside : {"a.1.tsv", "a.2.tsv", "a.6.tsv"}) {
      static_cast<void>(folder.file(beside, ""));
    }
    const Summary summary = summarize_ok(folder.file("a.tsv", "Time (ns)\tn\n0\t1\n1000\t2\n"));
    return summary.recording.notes.empty() ? "" : summary.recording.notes.front();
  };
  const std::string then = "; kymo report, diff and export read all parts that you name as one";
  EXPECT_EQ(
      note(R"({"number":1,"previous":"a.tsv","next":"a.2.tsv"})"),
      "it is only part 1 of a longer recording: the rows before are in \"a.tsv\", those after "
      "in \"a.2.tsv\"" +
          then);
  EXPECT_EQ(note(R"({"number":0,"next":"a.1.tsv"})"),
            "it is only part 0 of a longer recording: the rows after are in \"a.1.tsv\"" + then);
  EXPECT_EQ(note(R"({"number":7,"previous":"a.6.tsv"})"),
            "it is only part 7 of a longer recording: the rows before are in \"a.6.tsv\"" + then);
  for (const char* none : {R"({"number":0})", "null", "7", R"({"next":7})"}) {
    EXPECT_EQ(note(none), "") << none;
  }
}

TEST(Summary, CountersHaveRatesAndGaugesHaveMeans) {
  const tests::TempFolder folder;
  std::string rows = "Time (ns)\tn_bytes\tlevel\n";
  // 100 ms at 1 kHz. The counter grows by 10 bytes per row, but by 1000 per row from 50 ms to 60
  // ms.
  std::uint64_t bytes = 7;
  for (std::uint64_t ms = 0; ms <= 100; ++ms) {
    rows += std::to_string(ms * 1'000'000) + "\t" + std::to_string(bytes) + "\t" +
            std::to_string(ms == 20 ? 9 : 3) + "\n";
    bytes += ms >= 50 && ms < 60 ? 1000 : 10;
  }
  const std::string path = folder.file("a.tsv", rows);
  static_cast<void>(folder.file("a.meta.json", metadata(R"("ticks_due":101,"rows_written":101)")));
  static_cast<void>(folder.file("a.gaps.tsv", kGapsHeader));
  const Summary summary = summarize_ok(path);
  EXPECT_TRUE(summary.recording.notes.empty());
  ASSERT_EQ(summary.columns.size(), 2U);
  const ColumnSummary& counter = summary.columns[0];
  EXPECT_EQ(counter.info.unit, Unit::bytes);
  EXPECT_EQ(counter.first, 7U);
  EXPECT_EQ(counter.delta, 90U * 10 + 10U * 1000);
  EXPECT_DOUBLE_EQ(counter.rate, 109'000);
  EXPECT_DOUBLE_EQ(counter.highest_rate, 1'000'000);
  EXPECT_EQ(counter.highest_rate_at_ns, 50'000'000U);
  const ColumnSummary& gauge = summary.columns[1];
  EXPECT_EQ(gauge.min, 3U);
  EXPECT_EQ(gauge.max, 9U);
  EXPECT_NEAR(gauge.mean, 3 + 6.0 / 100, 1e-9);
  EXPECT_EQ(judge(summary).front().level, Verdict::Level::good);
}

// The highest rate of the windows of at least 10 ms that end at a row, and of those that begin at one, by trying each.
double highest_rate_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& rows) {
  double highest = 0;
  const auto look = [&](std::size_t begin, std::size_t end) {
    const std::uint64_t length = rows[end].first - rows[begin].first;
    if (length < 10'000'000) return;
    highest = std::max(highest, static_cast<double>(rows[end].second - rows[begin].second) * 1e9 /
                                    static_cast<double>(length));
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::size_t begin = row;
    while (begin > 0 && rows[row].first - rows[begin].first < 10'000'000) --begin;
    look(begin, row);
    std::size_t end = row;
    while (end + 1 < rows.size() && rows[end].first - rows[row].first < 10'000'000) ++end;
    look(row, end);
  }
  return highest;
}

TEST(Summary, TheHighestRateIsThatOfTheBestWindowWhereverItBeginsAndAlsoAtTheEnd) {
  const tests::TempFolder folder;
  std::string text = "Time (ns)\tc\n";
  for (std::uint64_t ms = 0; ms <= 1005; ++ms) {
    text += std::to_string(ms * 1'000'000) + "\t" + (ms < 1005 ? "0\n" : "4300\n");
  }
  const Summary tail = summarize_ok(folder.file("tail.tsv", text));
  EXPECT_DOUBLE_EQ(tail.columns[0].highest_rate, 430'000);
  EXPECT_EQ(tail.columns[0].highest_rate_at_ns, 995'000'000U);
  EXPECT_EQ(tail.columns[0].busiest.growth, 4300);

  std::mt19937_64 random(50);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> rows;
    std::uint64_t time = 0;
    std::uint64_t value = 0;
    text = "Time (ns)\tc\n";
    for (int row = 0; row < 40'000; ++row) {  // fills several blocks
      text += std::to_string(time) + "\t" + std::to_string(value) + "\n";
      rows.emplace_back(time, value);
      time += 200'000 + random() % 1'000'000 + (random() % 1000 == 0 ? 50'000'000U : 0U);
      value += random() % 100 == 0 ? random() % 10'000 : 0U;
    }
    const Summary summary = summarize_ok(folder.file(std::to_string(round) + ".tsv", text));
    EXPECT_DOUBLE_EQ(summary.columns[0].highest_rate, highest_rate_of(rows));
  }
}

// The time from the first row to the second is shorter than the others. It was in no window: "highest 0/s" beside a
// 90th percentile of 642/s.
TEST(Summary, WhatHappensRightAfterTheFirstRowIsInAWindow) {
  const tests::TempFolder folder;
  std::string text = "Time (ns)\tn\n2100000\t0\n";
  for (int ms = 3; ms <= 100; ++ms) text += std::to_string(ms) + "000000\t7\n";
  const Summary summary = summarize_ok(folder.file("first.tsv", text));
  EXPECT_DOUBLE_EQ(summary.columns[0].highest_rate, 7 / 0.0109);
  EXPECT_EQ(summary.columns[0].highest_rate_at_ns, 2'100'000U);
  EXPECT_LE(summary.columns[0].rates.p99, summary.columns[0].highest_rate);
}

// Rows are missed while the machine is busy, and just then a queue is long. The mean was over the rows: 10.7.
TEST(Summary, TheMeanOfAGaugeIsOverTheTimeAlsoOfMissedRows) {
  const tests::TempFolder folder;
  std::string rows = "Time (ns)\tn_bytes\tlevel\n";
  for (int round = 0; round < 10; ++round) {
    const auto add = [&](int ms, int level) {
      rows +=
          std::to_string((round * 200 + ms) * 1'000'000) + "\t0\t" + std::to_string(level) + "\n";
    };
    for (int ms = 0; ms < 100; ++ms) add(ms, 1);
    for (int ms = 100; ms < 200; ms += 20) add(ms, 201);
    add(199, 201);
  }
  const std::string path = folder.file("a.tsv", rows);
  static_cast<void>(
      folder.file("a.meta.json", metadata(R"("ticks_due":2000,"rows_written":1060)")));
  static_cast<void>(folder.file("a.gaps.tsv", kGapsHeader));
  EXPECT_NEAR(summarize_ok(path).columns[1].mean, 101, 1);
}

// The figures of a source are as old as their row says. By the times of the rows, the CPU time of a second was 5 s/s of the
// tree, and 2 s/s of the machine.
TEST(Summary, RatesOfValuesThatWereReadBeforeTheirRowAreByTheTimeOfTheReading) {
  const tests::TempFolder folder;
  std::string text =
      "Time (ns)\ttree_cpu_ns\tprofiler_tree_age_ns\tmachine_cpu_ns\tprofiler_machine_age_ns\n";
  std::uint64_t read_ms = 0;
  for (std::uint64_t ms = 0; ms < 1000; ++ms) {
    // Each 100 ms a reading comes 50 ms late, and then one in time.
    if (ms % 100 < 50 || ms % 100 == 99) read_ms = ms;
    text += std::to_string(ms * 1'000'000) + "\t" + std::to_string(read_ms * 1'000'000) + "\t" +
            std::to_string((ms - read_ms) * 1'000'000) + "\t" +
            std::to_string(ms / 12 * 12'000'000) + "\t" + std::to_string(ms % 12 * 1'000'000) +
            "\n";
  }
  const Summary summary = summarize_ok(folder.file("tree.tsv", text));
  for (const std::size_t column : {0U, 2U}) {
    EXPECT_NEAR(summary.columns[column].highest_rate, 1e9, 1e6);
    EXPECT_NEAR(summary.columns[column].rates.p99, 1e9, 1e6);
  }
  EXPECT_EQ(summary.columns[0].delta, 999'000'000U);
}

// The kernel counts the time of ended children in steps of 10 ms. A program on one CPU had peaks of 2 s/s.
TEST(Summary, AStepOfTheClockOfEndedChildrenIsNoPeak) {
  const tests::TempFolder folder;
  std::string text = "Time (ns)\ttree_cpu_ns\tprofiler_tree_age_ns\tcalls\n";
  for (std::uint64_t ms = 0; ms < 1000; ++ms) {
    const std::uint64_t cpu_ms = ms + (ms >= 200 ? 10 : 0);
    text += std::to_string(ms * 1'000'000) + "\t" + std::to_string(cpu_ms * 1'000'000) + "\t0\t" +
            std::to_string(cpu_ms) + "\n";
  }
  const Summary summary = summarize_ok(folder.file("tree.tsv", text));
  EXPECT_EQ(summary.columns[0].rate_window_ns, 100'000'000U);
  EXPECT_NEAR(summary.columns[0].highest_rate, 1.1e9, 1e6);
  EXPECT_NEAR(summary.columns[0].rates.p99, 1.1e9, 1e6);
  const BusyStretch& busiest = summary.columns[0].busiest;
  EXPECT_EQ(busiest.end_ns - busiest.begin_ns, 999'000'000U);
  EXPECT_EQ(summary.columns[2].rate_window_ns, 10'000'000U);
  EXPECT_EQ(summary.columns[2].highest_rate, 2000);
}

TEST(Summary, BlocksDoNotShowInTheResult) {
  const tests::TempFolder folder;
  std::string rows = "Time (ns)\tc\n";
  constexpr std::uint64_t kRows = 50'000;  // fills several blocks
  for (std::uint64_t row = 0; row < kRows; ++row) {
    rows += std::to_string(row * 1'000'000) + "\t" + std::to_string(row * 5) + "\n";
  }
  const Summary summary = summarize_ok(folder.file("a.tsv", rows));
  EXPECT_EQ(summary.rows, kRows);
  EXPECT_EQ(summary.columns[0].delta, (kRows - 1) * 5);
  EXPECT_EQ(summary.columns[0].falls, 0U);
  EXPECT_DOUBLE_EQ(summary.columns[0].highest_rate, 5000);
}

TEST(Summary, WithoutMetadataKindsAreToldFromTheValues) {
  const tests::TempFolder folder;
  const Summary summary =
      summarize_ok(folder.file("a.tsv", "Time (ns)\tup\tdown\n1\t1\t5\n2\t2\t4\n"));
  EXPECT_EQ(summary.columns[0].info.kind, Kind::counter);
  EXPECT_EQ(summary.columns[1].info.kind, Kind::gauge);
  EXPECT_TRUE(has_note(summary, "a.meta.json"));
  EXPECT_TRUE(has_note(summary, "a.gaps.tsv"));
  EXPECT_FALSE(capture_of(summary).has_value());
}

// Before, the note was only that a file could not be opened.
TEST(Summary, WhereOnlyTheListOfGapsIsMissingTheRecordingIsSaidToHaveEnded) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tn_bytes\tlevel\n1\t1\t5\n2\t2\t4\n");
  static_cast<void>(folder.file("a.meta.json", metadata(R"("ticks_due":2,"rows_written":2)")));
  const Summary summary = summarize_ok(path);
  ASSERT_EQ(summary.recording.notes.size(), 1U);
  EXPECT_TRUE(has_note(summary, "a.gaps.tsv"));
  EXPECT_TRUE(has_note(summary,
                       "; the metadata list its longest gaps; the recording itself ended properly, "
                       "with all rows and totals"))
      << summary.recording.notes[0];
  EXPECT_EQ(judge(summary).front().level, Verdict::Level::good);
}

TEST(Summary, RefusesMetadataOfANewerVersionByName) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tn_bytes\n1\t1\n");
  static_cast<void>(folder.file("a.meta.json", metadata("", "7")));
  auto summary = summarize(path);
  ASSERT_FALSE(summary.ok());
  EXPECT_NE(summary.error().message.find("format_version 7 is newer than 1"), std::string::npos);
}

TEST(Summary, NamesColumnsThatMetadataAndHeaderDoNotShare) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tlevel\tother\n1\t1\t1\n");
  static_cast<void>(folder.file("a.meta.json", metadata(R"("ticks_due":9,"rows_written":9)")));
  const Summary summary = summarize_ok(path);
  EXPECT_TRUE(has_note(summary, "does not describe \"other\""));
  EXPECT_TRUE(has_note(summary, "describes \"n_bytes\", which the header does not have"));
  EXPECT_TRUE(has_note(summary, "the metadata count 9 rows, the file holds 1"));
  EXPECT_EQ(summary.columns[0].info.kind, Kind::gauge);
}

TEST(Summary, BrokenOrHostileMetadataIsANoteAndTheRowsAreRead) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tlevel\n1\t1\n");
  for (const std::string& text :
       {std::string("{\"format_version\":1,"), std::string("[]"), std::string(),
        std::string("{\"format_version\":\"one\"}"), std::string(100'000, '[')}) {
    static_cast<void>(folder.file("a.meta.json", text));
    const Summary summary = summarize_ok(path);
    EXPECT_EQ(summary.rows, 1U);
    EXPECT_TRUE(has_note(summary, "read metadata"));
  }
  static_cast<void>(
      folder.file("a.meta.json",
                  R"({"format_version":1,"columns":{"a":3},"marks":[1,{"at_ns":-4}],"stats":[]})"));
  EXPECT_EQ(summarize_ok(path).rows, 1U);
}

TEST(Summary, ACounterThatGoesBackIsNoted) {
  const tests::TempFolder folder;
  const std::string path =
      folder.file("a.tsv", "Time (ns)\tn_bytes\tlevel\n1\t5\t0\n2\t3\t0\n3\t4\t0\n");
  static_cast<void>(folder.file("a.meta.json", metadata("")));
  const Summary summary = summarize_ok(path);
  EXPECT_EQ(summary.columns[0].falls, 1U);
  EXPECT_TRUE(has_note(summary, "\"n_bytes\" goes back once"));
}

// The report had the last value without the first, kymo diff the sum of the steps up, and Python a number below zero.
TEST(Summary, TheTotalOfACounterThatGoesBackIsTheSumOfItsStepsUp) {
  const tests::TempFolder folder;
  static_cast<void>(folder.file("a.meta.json", metadata("")));
  std::string rows = "Time (ns)\tn_bytes\tlevel\n";
  std::uint64_t total = 0;
  std::uint64_t value = 100;
  for (std::uint64_t row = 0; row < 50'000; ++row) {  // fills several blocks
    if (row != 0 && row % 10'000 == 0) {
      value = 3;
    } else if (row != 0) {
      total += row % 7;
      value += row % 7;
    }
    rows += std::to_string(row * 1'000'000) + "\t" + std::to_string(value) + "\t0\n";
  }
  const Summary summary = summarize_ok(folder.file("a.tsv", rows));
  EXPECT_EQ(summary.columns[0].delta, total);
  const auto blocks = read_blocks(summary, {0, summary.last_ns}, summary.last_ns);
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ((*blocks)[0].growth, static_cast<double>(total));
}

TEST(Summary, MissedTicksAreCountedByCauseAndJudged) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tc\n1000\t1\n9000\t2\n");
  static_cast<void>(folder.file("a.gaps.tsv", std::string(kGapsHeader) +
                                                  "2000\t5000\t3\tlate\n5000\t9000\t4\tring_full\n"
                                                  "1\t2\t3\tbored\n7\t9\t2\tla"));
  const Summary summary = summarize_ok(path);
  const auto capture = capture_of(summary);
  ASSERT_TRUE(capture.has_value());
  EXPECT_EQ(capture->ticks_due, 9U);
  EXPECT_EQ(capture->missed, (std::array<std::uint64_t, 4>{3, 4, 0}));
  EXPECT_FALSE(capture->exact);
  EXPECT_TRUE(has_note(summary, "line 4: \"1?2?3?bored\" is not a gap"));
  EXPECT_TRUE(has_note(summary, "line 5: cut short"));
  const auto verdicts = judge(summary);
  EXPECT_EQ(verdicts[0].level, Verdict::Level::bad);
  EXPECT_NE(verdicts[0].text.find("more slots"), std::string::npos);
}

TEST(Summary, OnlyTheLongestGapsAreKeptAndAllAreCounted) {
  const tests::TempFolder folder;
  std::string text = kGapsHeader;
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    text += std::to_string(i * 10'000) + "\t" + std::to_string(i * 10'000 + i) + "\t1\tlate\n";
  }
  auto gaps = read_gaps(folder.file("a.gaps.tsv", text));
  ASSERT_TRUE(gaps.ok());
  EXPECT_EQ(gaps->count, 3000U);
  EXPECT_EQ(gaps->ticks(), 3000U);
  ASSERT_EQ(gaps->longest.size(), Gaps::kMaxLongest);
  EXPECT_EQ(gaps->longest.front().start_ns, 2001U * 10'000);
  EXPECT_EQ(gaps->longest.back().start_ns, 3000U * 10'000);
}

TEST(Summary, ARecordingOfNothingIsBad) {
  const tests::TempFolder folder;
  const Summary summary = summarize_ok(folder.file("a.tsv", "Time (ns)\tc\n"));
  EXPECT_EQ(summary.rows, 0U);
  EXPECT_EQ(summary.duration_ns(), 0U);
  EXPECT_EQ(judge(summary)[0].level, Verdict::Level::bad);
}

TEST(Summary, ARecordingOfOneRowSaysThatNothingCanBeCompared) {
  const tests::TempFolder folder;
  const auto first_verdict = [&](const std::string& name, const char* rows) {
    const std::string path = folder.file(name + ".tsv", rows);
    const std::string count = name == "one" ? "1" : "2";
    static_cast<void>(folder.file(name + ".meta.json",
                                  R"({"format_version":1,"state":"ended","stats":{"ticks_due":)" +
                                      count + R"(,"rows_written":)" + count + "}}"));
    return judge(summarize_ok(path))[0].text;
  };
  EXPECT_EQ(first_verdict("one", "Time (ns)\tc\n1000\t5\n"),
            "it has only one row, so nothing can be compared: what was counted before that row is "
            "in no figure");
  EXPECT_EQ(first_verdict("two", "Time (ns)\tc\n1000\t5\n2000\t6\n"), "no problem was found");
}

TEST(Summary, ARecordingWhoseRowsTheDiskRefusedSaysSo) {
  const tests::TempFolder folder;
  const std::string path = folder.file("a.tsv", "Time (ns)\tc\n");
  static_cast<void>(folder.file("a.meta.json", R"({"format_version":1,"state":"failed",
                         "stats":{"ticks_due":1200,"rows_written":0,"missed_sink_error":1200}})"));
  EXPECT_EQ(judge(summarize_ok(path))[0].text,
            "it holds no rows: its disk did not take 1200 rows: see that it has space");
  static_cast<void>(
      folder.file("a.meta.json", R"({"format_version":1,"state":"failed","stats":{}})"));
  EXPECT_EQ(judge(summarize_ok(path))[0].text,
            "it holds no rows: its recorder could not write them: see that its disk has space");
  static_cast<void>(folder.file("a.meta.json", R"({"format_version":1,"state":"ended",
                         "stats":{"ticks_due":1200,"rows_written":1200}})"));
  EXPECT_EQ(judge(summarize_ok(path))[0].text,
            "it holds no rows: its metadata count 1,200, so it was cut off or changed after it was "
            "recorded");
  const std::string rows = folder.file("b.tsv", "Time (ns)\tc\n1000\t1\n9000\t2\n");
  static_cast<void>(folder.file("b.meta.json", R"({"format_version":1,"state":"failed"})"));
  EXPECT_EQ(judge(summarize_ok(rows))[0].level, Verdict::Level::bad);
}

}  // namespace
}  // namespace kymo::analysis
