#include "kymo/flight_recorder.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/trouble.h"
#include "recorder/metrics/metric_rules.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

class FlightRecorderTest : public TemporaryFolderTest {
 protected:
  void SetUp() override {
    TemporaryFolderTest::SetUp();
    info_.columns = columns_of({"steps", "", Kind::gauge, Unit::count, {}});
    info_.interval = std::chrono::milliseconds(1);
    info_.rows_per_slot = 10;
    options_.keep = std::chrono::seconds(1);
    options_.directory = in_folder("snapshots");
    options_.before = std::chrono::milliseconds(100);
    options_.after = std::chrono::milliseconds(50);
    options_.fired = [this](const std::string& rule, const Result<std::string>& path) {
      const std::lock_guard lock(mutex_);
      rules_.push_back(rule);
      paths_.push_back(path ? *path : path.error().message);
    };
  }
  // Adds rows that are one millisecond apart, up to `until`. The value is 1 for 20 ms from `peak`
  // on.
  void play(FlightRecorder& recorder, std::uint64_t until, std::uint64_t peak = UINT64_MAX) {
    while (at_ms_ < until) {
      std::vector<std::uint64_t> words;
      for (int i = 0; i < 10; ++i, ++at_ms_) {
        words.insert(words.end(), {at_ms_ * kMs, at_ms_ >= peak && at_ms_ < peak + 20 ? 1U : 0U});
      }
      ASSERT_TRUE(recorder.write({words.data(), 10, 2}));
    }
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    if (std::filesystem::exists(options_.directory)) {
      for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
        names.push_back(entry.path());
      }
    }
    return names;
  }

  RecordingInfo info_;
  FlightRecorderOptions options_;
  // Waits until `count` snapshots of rules were reported and all snapshots are complete.
  void await(std::size_t count) {
    const auto done = [&] {
      const std::lock_guard lock(mutex_);
      return paths_.size() >= count && std::all_of(paths_.begin(), paths_.end(), is_over);
    };
    while (!done()) {
      std::this_thread::yield();
    }
  }
  static bool is_over(const std::string& path) {
    const std::string meta = content(path.substr(0, path.size() - 4) + ".meta.json");
    return meta.empty() || meta.find("\"running\"") == std::string::npos;
  }

  std::uint64_t at_ms_ = 0;
  std::mutex mutex_;  // guards the members below
  std::vector<std::string> rules_;
  std::vector<std::string> paths_;
};

TEST_F(FlightRecorderTest, WritesNothingUntilItIsAsked) {
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 3000);
  ASSERT_TRUE(recorder.close({}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FlightRecorderTest, ARuleWritesWhatCameBeforeAndAfterAndRecordingGoesOn) {
  options_.rules = {"steps > 0"};
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 2000, 1500);
  await(1);
  ASSERT_EQ(paths_.size(), 1U) << "one episode must give one snapshot";
  EXPECT_EQ(rules_[0], "steps > 0");
  const std::vector<std::string> rows = lines(paths_[0]);
  ASSERT_EQ(rows.size(), 151U);
  EXPECT_EQ(rows[1], "0\t0");
  EXPECT_EQ(rows[101], std::to_string(100 * kMs) + "\t1") << "the row for which the rule fired";
  const auto meta =
      nlohmann::json::parse(content(paths_[0].substr(0, paths_[0].size() - 4) + ".meta.json"));
  EXPECT_EQ(meta["state"], "ended");
  EXPECT_EQ(meta["about"]["reason"], "rule");
  EXPECT_EQ(meta["about"]["rule"], "steps > 0");
  EXPECT_EQ(meta["marks"][0]["name"], "snapshot");
  EXPECT_EQ(meta["marks"][0]["at_ns"], 100 * kMs);
  play(recorder, 2500, 2200);
  await(2);
  EXPECT_EQ(paths_.size(), 2U) << "armed again";
}

// docs/record.md says so.
TEST_F(FlightRecorderTest, ARuleThatIsTrueInTheFirstRowTakesASnapshotFromThereOn) {
  options_.rules = {"steps < 1"};
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 200);
  await(1);
  ASSERT_EQ(paths_.size(), 1U);
  const std::vector<std::string> rows = lines(paths_[0]);
  ASSERT_EQ(rows.size(), 51U) << "nothing is before the first row";
  EXPECT_EQ(rows[1], "0\t0");
  play(recorder, 600, 300);
  await(2);
  EXPECT_EQ(paths_.size(), 2U) << "it was true again after it was false";
}

TEST_F(FlightRecorderTest, ACallbackThatThrowsCostsNoSnapshotAndIsSaidAtTheEnd) {
  options_.rules = {"steps > 0"};
  options_.fired = [told = options_.fired](const std::string& rule,
                                           const Result<std::string>& path) {
    told(rule, path);
    throw 5;
  };
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 2000, 1500);
  await(1);
  EXPECT_EQ(lines(paths_.at(0)).size(), 151U);
  const Result<void> closed = recorder.close({});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message,
            "the callback FlightRecorderOptions::fired has thrown: not a std::exception");
  ASSERT_TRUE(recorder.open(info_));
  EXPECT_TRUE(recorder.close({})) << "the next recording has not thrown";
}

TEST_F(FlightRecorderTest, TheOldestSnapshotsMakeRoom) {
  options_.rules = {"steps > 0"};
  options_.max_snapshots = 3;
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  std::filesystem::create_directory(options_.directory);
  std::ofstream(options_.directory + "/notes.tsv") << "somebody else's";
  for (std::uint64_t peak = 500; peak < 5000; peak += 500) {
    play(recorder, peak + 400, peak);
    await(peak / 500);
  }
  ASSERT_EQ(paths_.size(), 9U);
  EXPECT_EQ(files().size(), 3U * 3 + 1);
  EXPECT_FALSE(std::filesystem::exists(paths_[5]));
  EXPECT_TRUE(std::filesystem::exists(paths_[6]));
  EXPECT_TRUE(std::filesystem::exists(options_.directory + "/notes.tsv"));
}

TEST_F(FlightRecorderTest, SnapshotsOfAClockThatWasAheadAreTheFirstToMakeRoom) {
  options_.rules = {"steps > 0"};
  options_.max_snapshots = 3;
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  std::filesystem::create_directory(options_.directory);
  const std::string ahead = options_.directory + "/snapshot-29990101T000000Z-1-000001.tsv";
  static_cast<void>(std::ofstream(ahead).is_open());
  for (std::uint64_t peak = 500; peak < 2000; peak += 500) {
    play(recorder, peak + 400, peak);
    await(peak / 500);
  }
  ASSERT_EQ(paths_.size(), 3U);
  EXPECT_FALSE(std::filesystem::exists(ahead));
  for (const std::string& path : paths_) EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(FlightRecorderTest, OfAStormTheFirstSnapshotsAreKeptAndNoneIsRemovedWhileItIsWritten) {
  options_.rules = {"steps > 0"};
  options_.max_snapshots = 4;
  options_.keep = std::chrono::seconds(60);  // the rows come faster than the clock runs
  options_.after = std::chrono::seconds(10);
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  for (std::uint64_t peak = 200; peak < 1200; peak += 100) {
    play(recorder, peak + 50, peak);
  }
  EXPECT_EQ(recorder.lost_rows().text,
            "6 snapshots of rules were not begun, because 4 were being written, the most at once "
            "(max_snapshots)");
  const Error refused = recorder.snapshot({}, true).error();
  EXPECT_EQ(refused.code, Code::resource_exhausted);
  EXPECT_EQ(refused.message,
            "no snapshot was begun: 4 are being written, the most at once (max_snapshots)");
  play(recorder, 12'000);
  await(10);
  std::vector<std::string> kept;
  for (const std::string& told : paths_) {
    if (told != refused.message) {
      kept.push_back(told);
    }
  }
  ASSERT_EQ(kept.size(), 4U);
  for (const std::string& path : kept) {
    EXPECT_EQ(lines(path).size(), 1U + 10'100) << path;
  }
  EXPECT_EQ(files().size(), 3U * 4);
  EXPECT_TRUE(recorder.close({})) << "what was begun is whole";
  at_ms_ = 0;
  ASSERT_TRUE(recorder.open(info_));
  EXPECT_EQ(recorder.lost_rows().text, "");
  play(recorder, 12'000, 500);
  ASSERT_TRUE(recorder.close({}));
  EXPECT_EQ(files().size(), 3U * 4) << "a whole one made room, with all of its files";
}

// Two recorders, perhaps of two processes, may have the same folder.
TEST_F(FlightRecorderTest, WhatAnotherRecorderIsWritingIsNotRemoved) {
  options_.max_snapshots = 1;
  std::filesystem::create_directory(options_.directory);
  const auto leave = [&](const std::string& number, const std::string& state) {
    std::string stem = options_.directory + "/snapshot-20260101T000000Z-1-" + number;
    for (const char* ending : {".tsv", ".gaps.tsv", ".meta.json"}) {
      std::ofstream(stem + ending) << "{\"state\": \"" << state << "\"}";
    }
    return stem;
  };
  const std::string running = leave("000001", "running");
  const std::string ended = leave("000002", "ended");
  const std::string killed = leave("000003", "running");
  std::filesystem::last_write_time(
      killed + ".meta.json", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  ASSERT_TRUE(recorder.snapshot({}, false));
  ASSERT_TRUE(recorder.close({}));
  EXPECT_EQ(files().size(), 3U * 2);
  EXPECT_TRUE(std::filesystem::exists(running + ".tsv"));
  EXPECT_FALSE(std::filesystem::exists(ended + ".tsv"));
  EXPECT_FALSE(std::filesystem::exists(killed + ".tsv"));
}

// Before, each recorder counted from 1, so the second of two snapshots of one second found its name taken and was lost.
TEST_F(FlightRecorderTest, TwoRecordersOfAProcessWithOneFolderKeepAllTheirSnapshots) {
  FlightRecorder one(options_);
  FlightRecorder other(options_);
  ASSERT_TRUE(one.open(info_));
  ASSERT_TRUE(other.open(info_));
  std::set<std::string> paths;
  for (int i = 0; i < 5; ++i) {
    for (FlightRecorder* const recorder : {&one, &other}) {
      const Result<std::string> path = recorder->snapshot({}, false);
      ASSERT_TRUE(path) << path.error().message;
      paths.insert(*path);
    }
  }
  ASSERT_TRUE(one.close({}));
  ASSERT_TRUE(other.close({}));
  EXPECT_EQ(paths.size(), 10U);
  for (const std::string& path : paths) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(FlightRecorderTest, ASnapshotThatCannotBeWrittenIsToldAndCostsNothingElse) {
  options_.rules = {"steps > 0"};
  std::ofstream(options_.directory) << "a file where the folder should be";
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 1000, 500);
  await(1);
  ASSERT_EQ(paths_.size(), 1U);
  EXPECT_NE(paths_[0].find("cannot make the snapshots' folder"), std::string::npos) << paths_[0];
}

TEST_F(FlightRecorderTest, ARulesSnapshotWithoutAFolderIsToldAlsoIfNobodyListens) {
  options_.rules = {"steps > 0"};
  options_.fired = {};
  std::ofstream(options_.directory) << "a file where the folder should be";
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  EXPECT_EQ(recorder.lost_rows().text, "");
  play(recorder, 1000, 500);
  play(recorder, 2000, 1500);
  const Result<void> closed = recorder.close({});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::data_loss);
  EXPECT_EQ(
      closed.error().message,
      "2 snapshots could not be written whole; the first: cannot make the snapshots' folder " +
          options_.directory + ": Not a directory");
  EXPECT_EQ(recorder.lost_rows().text, closed.error().message);
  ASSERT_TRUE(recorder.open(info_));
  EXPECT_TRUE(recorder.close({})) << "the next recording has lost nothing";
}

TEST_F(FlightRecorderTest, ARulesSnapshotThatTheDiskDoesNotTakeIsTold) {
  options_.rules = {"steps > 0"};
  options_.before = std::chrono::seconds(1);
  options_.keep = std::chrono::seconds(10);  // the rows come faster than the clock runs
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  play(recorder, 900);
  {
    const FileSizeLimit full(5000);
    play(recorder, 2000, 1000);
    await(1);
    ASSERT_FALSE(recorder.close({}));
  }
  ASSERT_EQ(paths_.size(), 2U) << "when it began, and when it failed";
  EXPECT_NE(paths_[1].find(paths_[0] + " lacks "), std::string::npos) << paths_[1];
  EXPECT_NE(paths_[1].find("File too large"), std::string::npos) << paths_[1];
}

TEST_F(FlightRecorderTest, ASnapshotThatTheDiskDoesNotTakeIsAnErrorEverywhere) {
  Registry registry;
  ASSERT_TRUE(registry.counter({"steps", "help", Kind::counter, Unit::count, {}}));
  const auto recorder = std::make_shared<FlightRecorder>(options_);
  ProfilerOptions profiling;
  profiling.sink = recorder;
  profiling.flush = std::chrono::milliseconds(5);
  Profiler profiler(registry, profiling);
  TroubleWatch watch(profiler);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().rows_written < 600) {
    std::this_thread::yield();
  }
  Result<std::string> path = std::string();
  {
    const FileSizeLimit full(5000);
    path = recorder->snapshot(
        {.before = std::chrono::seconds(10), .after = std::chrono::milliseconds(1)}, true);
  }
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, Code::data_loss);
  const std::string& message = path.error().message;
  EXPECT_NE(message.find(" lacks "), std::string::npos) << message;
  EXPECT_NE(message.find(" rows: cannot write "), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  const std::string tells = "a snapshot could not be written whole: " + message;
  while (profiler.last_sink_error().empty()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(profiler.last_sink_error(), tells);
  const std::vector<std::string> warnings = profiler.warnings();
  EXPECT_NE(std::find(warnings.begin(), warnings.end(), tells), warnings.end());
  const std::vector<Trouble> troubles = watch.look();
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_EQ(troubles[0].text, tells);
  EXPECT_TRUE(watch.look().empty()) << "told once";
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_EQ(stopped.error().message, tells);
  const std::string file = message.substr(0, message.find(" lacks "));
  const auto meta = nlohmann::json::parse(content(file.substr(0, file.size() - 4) + ".meta.json"));
  // On a busy machine there can be so many gaps that their file does not fit either: then it has failed.
  if (lines(file).size() == 1 || meta["state"] != "ended") {
    EXPECT_EQ(meta["state"], "failed");
  } else {
    EXPECT_GE(meta["stats"]["missed_sink_error"], 500);
  }
}

TEST_F(FlightRecorderTest, AStopOfTheProgramFiresNoRule) {
  info_.columns = columns_of({"steps", "", Kind::counter, Unit::count, {}});
  for (const char* rule :
       {"steps > 5", "steps < 1", "rate(steps, 10ms) < 900", "rate(steps, 10ms) > 1100"}) {
    rules_.clear();
    paths_.clear();
    options_.rules = {rule};
    FlightRecorder recorder(options_);
    ASSERT_TRUE(recorder.open(info_));
    const auto play_until = [&recorder](std::uint64_t from, std::uint64_t until,
                                        std::uint64_t value) {
      for (std::uint64_t ms = from; ms < until; ++ms, ++value) {
        const std::array<std::uint64_t, 2> row{ms * kMs, value};
        ASSERT_TRUE(recorder.write({row.data(), 1, 2}));
      }
    };
    const bool grows = std::string_view(rule).find('>') != std::string_view::npos;
    play_until(0, 100, 0);
    recorder.gap({100 * kMs, 5100 * kMs, 5000, MissCause::frozen});
    play_until(5100, 5200, grows ? 5100 : 99);
    EXPECT_TRUE(recorder.close({}));
    EXPECT_TRUE(rules_.empty()) << rule;
    // The same without a stop: these rows are late, and the rule fires.
    FlightRecorder late(options_);
    ASSERT_TRUE(late.open(info_));
    const auto all = {
        std::array<std::uint64_t, 2>{0, 0}, {100 * kMs, 100}, {5100 * kMs, grows ? 9000U : 100U}};
    for (const auto& row : all) ASSERT_TRUE(late.write({row.data(), 1, 2}));
    EXPECT_TRUE(late.close({}));
    EXPECT_FALSE(rules_.empty()) << rule;
  }
}

TEST_F(FlightRecorderTest, RefusesARuleBeforeItRecords) {
  options_.rules = {"steps >"};
  EXPECT_EQ(FlightRecorder(options_).open(info_).error().code, Code::invalid_argument);
  options_.rules = {"stops > 5"};
  EXPECT_NE(FlightRecorder(options_).open(info_).error().message.find("did you mean steps"),
            std::string::npos);
}

TEST_F(FlightRecorderTest, RefusesDurationsThatNoSnapshotCanHave) {
  using std::chrono::hours;
  using std::chrono::seconds;
  const auto refusal = [this](const auto& change) {
    FlightRecorderOptions bad = options_;
    change(bad);
    const Result<void> opened = FlightRecorder(bad).open(info_);
    return opened || opened.error().code != Code::invalid_argument ? "" : opened.error().message;
  };
  EXPECT_EQ(refusal([](auto& bad) { bad.keep = seconds(-1); }),
            "flight recorder option keep = -1000000000 ns: must be 0 or more");
  EXPECT_EQ(refusal([](auto& bad) { bad.after = hours(1); }),
            "the flight recorder's rules cannot take snapshots from 100 ms before to 1.00 h after: "
            "must be 0 s or more before, and 0 to 600 s after, but not both 0");
  EXPECT_NE(refusal([](auto& bad) { bad.before = seconds(-1); }), "");
  EXPECT_NE(refusal([](auto& bad) { bad.after = seconds(-1); }), "");
  EXPECT_NE(refusal([](auto& bad) { bad.before = bad.after = seconds(0); }), "");
  EXPECT_EQ(refusal([](auto& bad) { bad.before = seconds(0); }), "");
}

TEST_F(FlightRecorderTest, RefusesASnapshotOfNothingAndOneThatIsTooLong) {
  FlightRecorder recorder(options_);
  EXPECT_EQ(recorder.snapshot({}, false).error().code, Code::failed_precondition);
  ASSERT_TRUE(recorder.open(info_));
  SnapshotRequest request;
  request.after = std::chrono::hours(1);
  const Error too_long = recorder.snapshot(request, false).error();
  EXPECT_EQ(too_long.code, Code::invalid_argument);
  EXPECT_EQ(too_long.message,
            "cannot take a snapshot from 5 s before to 1.00 h after: must be 0 s or more before, "
            "and 0 to 600 s after, but not both 0");
  request.after = std::chrono::seconds(0);
  request.before = request.after;
  EXPECT_EQ(recorder.snapshot(request, false).error().code, Code::invalid_argument);
  request = {};
  request.directory = in_folder("nowhere");
  EXPECT_EQ(recorder.snapshot(request, false).error().code, Code::not_found);
}

TEST_F(FlightRecorderTest, KeepsLessWhereTheMemoryDoesNotReach) {
  options_.keep = std::chrono::hours(24 * 365);
  FlightRecorder recorder(options_);
  ASSERT_TRUE(recorder.open(info_));
  EXPECT_EQ(recorder.kept(), std::chrono::milliseconds((64U << 20U) / 16));
}

TEST_F(FlightRecorderTest, SnapshotsThatReachBackLessFarThanAskedForAreSaidAtTheStart) {
  Registry registry;
  ASSERT_TRUE(registry.counter({"steps", "help", Kind::counter, Unit::count, {}}));
  options_.before = std::chrono::seconds(3);
  const auto warnings = [&] {
    const auto recorder = std::make_shared<FlightRecorder>(options_);
    ProfilerOptions profiling;
    profiling.sink = recorder;
    Profiler profiler(registry, profiling);
    EXPECT_TRUE(profiler.start());
    EXPECT_EQ(profiler.warnings(), recorder->warnings());
    return profiler.warnings();
  };
  EXPECT_EQ(warnings(), std::vector<std::string>()) << "there is no rule: nothing reaches back";
  options_.rules = {"steps > 5"};
  EXPECT_EQ(warnings(), std::vector<std::string>{
                            "the snapshots of rules reach back 1.00 s, not 3 s "
                            "(FlightRecorderOptions::before): only the rows of 1 s are kept "
                            "(FlightRecorderOptions::keep)"});
  options_.keep = options_.before;
  EXPECT_EQ(warnings(), std::vector<std::string>());
  options_.before = options_.keep = std::chrono::hours(24 * 365);
  ASSERT_EQ(warnings().size(), 1U);
  EXPECT_TRUE(warnings().front().ends_with(
      "at this interval, no more rows of so many columns fit into the memory"))
      << warnings().front();
}

}  // namespace
}  // namespace kymo
