#include "lens/analysis/joined_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kymo/sink.h"
#include "lens/analysis/quality.h"
#include "lens/analysis/recording_diff.h"
#include "lens/analysis/summary.h"
#include "recorder/metrics/metric_rules.h"
#include "temp_folder.h"

namespace kymo::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMs = 1'000'000;

class JoinedPartsTest : public ::testing::Test {
 protected:
  // A recording of 100 rows of a counter, of which five ticks are missing. Returns its files.
  std::vector<std::string> record(const std::string& name, const TsvOptions& options = {}) {
    RecordingInfo info;
    info.columns = columns_of({"steps", "Steps", Kind::counter, Unit::count, {}});
    info.interval = std::chrono::nanoseconds(kMs);
    info.start_unix_ns = static_cast<std::int64_t>(++records_);
    const std::shared_ptr<Sink> sink = make_tsv_sink(folder_ / name, options);
    EXPECT_TRUE(sink->open(info));
    ProfilerStats stats;
    for (std::uint64_t tick = 1; tick <= 105; ++tick) {
      ++stats.ticks_due;
      if (tick > 40 && tick <= 45) {
        ++stats.missed_late;
        if (tick == 45) sink->gap({41 * kMs, 46 * kMs, 5, MissCause::late});
        continue;
      }
      const std::uint64_t row[] = {tick * kMs, tick * tick};
      EXPECT_TRUE(sink->write({row, 1, 2}));
      ++stats.rows_captured;
      ++stats.rows_written;
    }
    stats.bytes_written = sink->bytes_written();
    stats.duration_ns = 105 * kMs;
    EXPECT_TRUE(sink->close(stats));
    std::vector<std::string> files{folder_ / name};
    const std::string stem = recording_stem(files.front());
    for (int i = 1; fs::exists(stem + "." + std::to_string(i) + ".tsv"); ++i) {
      files.push_back(stem + "." + std::to_string(i) + ".tsv");
    }
    return files;
  }
  static std::vector<std::string> without(std::vector<std::string> files, std::size_t i) {
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    return files;
  }

  tests::TempFolder folder_;
  std::uint64_t records_ = 0;
};

// Before, each part had a report of its own, and nothing had the totals.
TEST_F(JoinedPartsTest, ARecordingThatWasCutIntoPartsHasTheFiguresOfAWholeOne) {
  const std::vector<std::string> whole = record("whole.tsv");
  std::vector<std::string> parts = record("cut.tsv", {.rotate_bytes = 200});
  ASSERT_EQ(whole.size(), 1U);
  ASSERT_GT(parts.size(), 3U);
  const std::vector<std::string> in_order = parts;
  std::reverse(parts.begin(), parts.end());  // their order on the command line does not matter
  ASSERT_EQ(join_parts(parts), (std::vector<std::vector<std::string>>{in_order}));
  const Result<Summary> one = summarize(whole);
  const Result<Summary> joined = summarize(in_order);
  ASSERT_TRUE(one.ok());
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  EXPECT_EQ(joined->recording.path, in_order.front());
  EXPECT_EQ(joined->recording.parts, in_order);
  EXPECT_EQ(joined->recording.notes, std::vector<std::string>());
  EXPECT_EQ(joined->recording.finish, Finish::ended);
  EXPECT_EQ(joined->rows, one->rows);
  EXPECT_EQ(joined->first_ns, one->first_ns);
  EXPECT_EQ(joined->last_ns, one->last_ns);
  ASSERT_EQ(joined->columns.size(), 1U);
  EXPECT_EQ(joined->columns[0].first, one->columns[0].first);
  EXPECT_EQ(joined->columns[0].delta, one->columns[0].delta);
  EXPECT_DOUBLE_EQ(joined->columns[0].mean, one->columns[0].mean);
  EXPECT_EQ(joined->columns[0].highest_rate, one->columns[0].highest_rate);
  EXPECT_EQ(joined->columns[0].highest_rate_at_ns, one->columns[0].highest_rate_at_ns);
  ASSERT_TRUE(joined->recording.gaps.has_value());
  EXPECT_EQ(joined->recording.gaps->ticks(), 5U);
  EXPECT_EQ(joined->recording.gaps->longest.size(), 1U);
  const auto capture = capture_of(*joined);
  ASSERT_TRUE(capture.has_value());
  EXPECT_EQ(capture->rows, 100U);
  EXPECT_EQ(capture->ticks_due, 105U);
}

// Before, each part was a run of its own, so two rotated recordings were compared as two sets of short runs.
TEST_F(JoinedPartsTest, ARotatedRecordingIsOneRunInAComparison) {
  const std::vector<std::string> whole = record("whole.tsv");
  const std::vector<std::string> parts = record("cut.tsv", {.rotate_bytes = 200});
  ASSERT_GT(parts.size(), 3U);
  const Result<RecordingDiff> diff = diff_recordings(whole, parts, {});
  ASSERT_TRUE(diff.ok()) << diff.error().message;
  EXPECT_FALSE(diff->by_runs);
  ASSERT_EQ(diff->after.size(), 1U);
  EXPECT_EQ(diff->after.front().summary.rows, 100U);
  EXPECT_EQ(diff->notes, std::vector<std::string>());
  const auto steps = std::find_if(diff->metrics.begin(), diff->metrics.end(),
                                  [](const MetricDiff& one) { return one.name == "steps"; });
  ASSERT_NE(steps, diff->metrics.end());
  EXPECT_EQ(steps->before, steps->after);
  EXPECT_EQ(steps->samples_before, steps->samples_after) << "the blocks of all parts count";
}

TEST_F(JoinedPartsTest, AComparisonSaysWhichPartsAreMissing) {
  const std::vector<std::string> whole = record("whole.tsv");
  const std::vector<std::string> parts = record("cut.tsv", {.rotate_bytes = 200});
  const Result<RecordingDiff> diff = diff_recordings(whole, without(parts, 0), {});
  ASSERT_TRUE(diff.ok()) << diff.error().message;
  ASSERT_EQ(diff->after.size(), 1U);
  ASSERT_EQ(diff->notes.size(), 1U);
  EXPECT_NE(diff->notes.front().find("it has only the parts 1 to"), std::string::npos)
      << diff->notes.front();
}

TEST_F(JoinedPartsTest, OnlyPartsThatFollowEachOtherAreJoined) {
  const std::vector<std::string> a = record("a.tsv", {.rotate_bytes = 300});
  const std::vector<std::string> b = record("b.tsv", {.rotate_bytes = 300});
  const std::vector<std::string> c = record("c.tsv");
  ASSERT_GE(a.size(), 4U);
  std::vector<std::string> mixed = without(a, 1);
  mixed.push_back(c.front());
  mixed.insert(mixed.end(), b.begin(), b.end());
  const std::vector<std::string> tail(a.begin() + 2, a.end());
  EXPECT_EQ(join_parts(mixed),
            (std::vector<std::vector<std::string>>{{a.front()}, tail, {c.front()}, b}));
  EXPECT_EQ(join_parts({c.front(), c.front()}),
            (std::vector<std::vector<std::string>>{{c.front()}, {c.front()}}));
  const Result<Summary> joined = summarize(tail);
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  ASSERT_EQ(joined->recording.notes.size(), 1U);
  EXPECT_EQ(joined->recording.notes.front(),
            "it has only the parts 2 to " + std::to_string(a.size() - 1) +
                " of a longer recording: the rows before are in \"a.1.tsv\"");
}

// Before, the sentence said that the rows were in a file that TsvOptions::keep_bytes had removed.
TEST_F(JoinedPartsTest, APartThatWasRemovedIsNotSaidToBeThere) {
  const std::vector<std::string> parts = record("run.tsv", {.rotate_bytes = 300});
  ASSERT_GE(parts.size(), 4U);
  fs::remove(parts[0]);
  const Result<Summary> alone = summarize({parts[1]});
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_EQ(alone->recording.notes.front(),
            "it is only part 1 of a longer recording: the rows before are in \"run.tsv\" (which is "
            "not there any more), those after in \"run.2.tsv\"; kymo report, diff and export read "
            "all parts that you name as one");
  // Before, such a report said that no problem was found, and this only in its last line.
  EXPECT_EQ(judge(*alone).front().text, alone->recording.notes.front());
  EXPECT_EQ(judge(*alone).front().level, Verdict::Level::warning);
}

// Before, a report of such a recording had the quality good, and its exports said nothing.
TEST_F(JoinedPartsTest, ScopesThatHadNoRoomAreAWarningAboutTheWholeRecording) {
  const std::vector<std::string> parts = record("run.tsv", {.rotate_bytes = 1000});
  ASSERT_EQ(parts.size(), 2U);
  for (const std::string& part : parts) {
    const std::string path = recording_stem(part) + ".meta.json";
    std::ifstream file(path);
    nlohmann::json metadata = nlohmann::json::parse(file);
    metadata["scopes"] = {{{"name", "batch"}, {"scopes_left_out", 2953}}, {{"name", "small"}}};
    metadata["scope_trees_left_out"] = 3;
    std::ofstream(path) << metadata;
  }
  const Result<Summary> joined = summarize(parts);
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  const std::string lost =
      "scopes are missing: 5,906 had no room in their trees, so give kymo::ScopeTree a higher "
      "limit; 6 older trees had no room in the recording";
  EXPECT_EQ(joined->recording.notes, std::vector<std::string>{lost});
  const std::vector<Verdict> verdicts = judge(*joined);
  EXPECT_TRUE(std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
    return verdict.level == Verdict::Level::warning && verdict.text == lost;
  }));
}

// Before, no part could be read.
TEST_F(JoinedPartsTest, APartWhoseHeaderSomebodyCutIsLeftOutAndSaid) {
  const char* const in_header = ": the file ends in the middle of its header, so it has no rows";
  const std::pair<std::size_t, const char*> lengths[] = {
      {0, ": the file is empty: it does not even have a header"}, {4, in_header}, {12, in_header}};
  for (const auto& [length, why] : lengths) {
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}}) {
      const std::vector<std::string> parts =
          record("run" + std::to_string(length) + "-" + std::to_string(cut) + ".tsv",
                 {.rotate_bytes = 1000});
      ASSERT_EQ(parts.size(), 2U);
      const std::uint64_t rows = summarize(parts[1 - cut])->rows;
      fs::resize_file(parts[cut], length);
      const Result<Summary> joined = summarize(parts);
      ASSERT_TRUE(joined.ok()) << joined.error().message;
      EXPECT_EQ(joined->rows, rows);
      EXPECT_EQ(joined->recording.notes.front(), "read " + parts[cut] + why);
      for (const std::string& part : parts) fs::resize_file(part, length);
      EXPECT_FALSE(summarize(parts).ok());
    }
  }
}

// Before, the quality said that the metadata were probably those of another recording.
TEST_F(JoinedPartsTest, RowsThatAreLeftOfAPartThatSomebodyCutAreNotAnotherRecordings) {
  const std::vector<std::string> parts = record("run.tsv", {.rotate_bytes = 1000});
  ASSERT_EQ(parts.size(), 2U);
  const std::string path = recording_stem(parts[0]) + ".meta.json";
  std::ifstream file(path);
  nlohmann::json metadata = nlohmann::json::parse(file);
  const std::uint64_t written = metadata["stats"]["rows_written"];
  metadata["stats"]["rows_written"] = 0;  // as RecordingParts writes it
  metadata["stats"]["missed_sink_error"] = written;
  std::ofstream(path) << metadata;
  fs::resize_file(parts[0], fs::file_size(parts[0]) / 2);
  const Result<Summary> joined = summarize(parts);
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  for (const Verdict& verdict : judge(*joined)) {
    EXPECT_EQ(verdict.text.find("of another recording"), std::string::npos) << verdict.text;
  }
}

TEST_F(JoinedPartsTest, WhatIsWrongWithAPartIsSaidWithItsName) {
  const std::vector<std::string> parts = record("run.tsv", {.rotate_bytes = 300});
  fs::resize_file(parts.back(), fs::file_size(parts.back()) - 2);
  fs::remove(recording_stem(parts.front()) + ".gaps.tsv");
  const Result<Summary> joined = summarize(parts);
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  EXPECT_EQ(joined->rows, 99U);
  ASSERT_EQ(joined->left_out.spans().size(), 1U);
  EXPECT_TRUE(joined->left_out.spans().front().reason.starts_with(
      fs::path(parts.back()).filename().string() + ": cut short"))
      << joined->left_out.spans().front().reason;
  EXPECT_TRUE(std::any_of(
      joined->recording.notes.begin(), joined->recording.notes.end(), [](const std::string& note) {
        return note.starts_with("run.tsv: ") && note.find("run.gaps.tsv") != std::string::npos;
      }));
}

}  // namespace
}  // namespace kymo::analysis
