#include "daemon/recording/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

struct RecorderTest : testing::Test {
  RecorderTest() {
    config.state_dir = folder.path();
    config.profiling_log = folder.path() + "/all.tsv";
    static_cast<void>(registry.counter({"a_events", "Events.", Kind::counter, Unit::count, {}}));
    static_cast<void>(registry.counter({"b_events", "Events.", Kind::counter, Unit::count, {}}));
  }
  void make() { recorder = Recorder::make(registry, config).value(); }
  std::string refusal(RecorderAction action, const RecorderChange& change = {}) {
    const Result<void> done = recorder->control(action, change);
    EXPECT_FALSE(done);
    return done ? "" : done.error().message;
  }
  [[nodiscard]] nlohmann::json metadata(const std::string& name) const {
    std::ifstream file(folder.path() + "/" + name + ".meta.json");
    return nlohmann::json::parse(file);
  }
  [[nodiscard]] std::size_t lines(const std::string& name) const {
    std::ifstream file(folder.path() + "/" + name + ".tsv");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

  test::TemporaryDirectory folder;
  Registry registry;
  Config config;
  std::unique_ptr<Recorder> recorder;
};

TEST_F(RecorderTest, AStopLeavesAWholeFileAndAStartBeginsAnother) {
  make();
  ASSERT_TRUE(recorder->start());
  while (recorder->latest()->profiler().stats().rows_captured < 5) std::this_thread::yield();
  ASSERT_TRUE(recorder->control(RecorderAction::stop, {}));
  EXPECT_FALSE(recorder->recording());
  const nlohmann::json ended = metadata("all");
  EXPECT_EQ(ended["state"], "ended");
  EXPECT_EQ(lines("all"), ended["stats"]["rows_written"].get<std::size_t>() + 1);
  EXPECT_EQ(ended["stats"]["ticks_due"], recorder->latest()->profiler().stats().ticks_due);

  RecorderChange change;
  change.interval_us = 500;
  change.metrics = "b_events";
  ASSERT_TRUE(recorder->control(RecorderAction::start, change));
  EXPECT_EQ(recorder->running()->log_path(), folder.path() + "/all-2.tsv");
  ASSERT_TRUE(recorder->stop());
  const nlohmann::json second = metadata("all-2");
  EXPECT_EQ(second["interval_ns"], 500'000);
  ASSERT_EQ(second["columns"].size(), 1U);
  EXPECT_EQ(second["columns"][0]["name"], "b_events");
  EXPECT_EQ(lines("all"), ended["stats"]["rows_written"].get<std::size_t>() + 1)
      << "the first recording must not change";
}

TEST_F(RecorderTest, RowsThatWereLostAreNoFailureOfAStop) {
  make();
  ASSERT_TRUE(recorder->start());
  const auto lose_rows = [this] {
    while (recorder->running()->profiler().stats().rows_written == 0) std::this_thread::yield();
    ASSERT_TRUE(fs::remove(recorder->running()->log_path()));
  };
  lose_rows();
  RecorderChange faster;
  faster.interval_us = 500;
  EXPECT_TRUE(recorder->control(RecorderAction::set, faster));
  lose_rows();
  EXPECT_TRUE(recorder->control(RecorderAction::stop, {}));
  ASSERT_TRUE(recorder->control(RecorderAction::start, {}));
  lose_rows();
  EXPECT_TRUE(recorder->stop());
  EXPECT_FALSE(recorder->recording());
}

// Before, the log of kymod said it only when the recorder stopped.
TEST_F(RecorderTest, AFileThatIsRemovedIsSaidWhileItIsRecorded) {
  make();
  ASSERT_TRUE(recorder->start());
  while (lines("all") < 2) std::this_thread::yield();
  ASSERT_TRUE(fs::remove(recorder->running()->log_path()));
  const auto is_said = [](const std::string& text) {
    return text.find("/all.tsv was removed or replaced by another program") != std::string::npos;
  };
  while (!is_said(recorder->running()->profiler().lost_rows().text)) std::this_thread::yield();
  const std::vector<Trouble> troubles = recorder->troubles();
  EXPECT_TRUE(std::any_of(troubles.begin(), troubles.end(),
                          [&](const Trouble& trouble) { return is_said(trouble.text); }));
  EXPECT_TRUE(recorder->stop());
}

// The warning about the second metric comes first in the list.
TEST_F(RecorderTest, EachCallbackThatThrowsIsToldOnce) {
  std::array<std::atomic<bool>, 2> fails{};
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(registry.callback({i == 0 ? "one" : "two", "help", Kind::gauge, Unit::count, {}},
                                  [&fails, i]() -> std::uint64_t {
                                    if (fails.at(i)) throw 5;
                                    return 1;
                                  }));
  }
  make();
  ASSERT_TRUE(recorder->start());
  static_cast<void>(recorder->new_warnings());
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    fails.at(i) = true;
    const std::string name = i == 0 ? "one" : "two";
    while (registry.callback_errors().size() < 2 - i) std::this_thread::yield();
    std::vector<std::string> warnings = recorder->new_warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].starts_with("metric '" + name + "': ")) << warnings[0];
    const std::uint64_t before = registry.callback_errors()[0].count;
    while (registry.callback_errors()[0].count == before) std::this_thread::yield();
    EXPECT_TRUE(recorder->new_warnings().empty());
  }
  ASSERT_TRUE(recorder->stop());
}

TEST_F(RecorderTest, ItsOwnCountsAreThoseOfTheRunThatGoesOn) {
  make();
  ASSERT_TRUE(recorder->start());
  const auto sampler = registry.sampler({"profiler_rows"}).value();
  std::uint64_t rows = 0;
  for (sampler->read(&rows); rows == 0; sampler->read(&rows)) std::this_thread::yield();
  ASSERT_TRUE(recorder->control(RecorderAction::stop, {}));
  sampler->read(&rows);
  EXPECT_EQ(rows, recorder->latest()->profiler().stats().rows_written)
      << "the counts stay while the recorder is stopped";
  ASSERT_TRUE(recorder->control(RecorderAction::start, {}));
  const auto run = recorder->running();
  ASSERT_TRUE(recorder->stop());
  sampler->read(&rows);
  EXPECT_EQ(rows, run->profiler().stats().rows_written);
}

TEST_F(RecorderTest, WhatIsWrongIsOneSentenceAndChangesNothing) {
  make();
  ASSERT_TRUE(recorder->start());
  const auto run = recorder->running();
  RecorderChange change;
  EXPECT_EQ(refusal(RecorderAction::start),
            "recorder: it is already running: stop it, or change its settings");
  EXPECT_EQ(refusal(RecorderAction::set),
            "recorder: nothing to set: give a rate, metrics or a file");
  for (const std::uint64_t us : {std::uint64_t{0}, std::uint64_t{86'400'000'001}, UINT64_MAX}) {
    change.interval_us = us;
    EXPECT_EQ(refusal(RecorderAction::set, change),
              "recorder: an interval of " + std::to_string(us) + " µs: must be 1 to 86400000000");
  }
  change.interval_us.reset();
  change.metrics = "none";
  EXPECT_EQ(refusal(RecorderAction::set, change),
            "recorder: metrics none: to record nothing, stop the recorder");
  change.metrics = "a_events,,b_events";
  EXPECT_NE(refusal(RecorderAction::set, change).find("an empty name"), std::string::npos);
  change.metrics = "a_event";
  EXPECT_NE(refusal(RecorderAction::set, change).find("a_events"), std::string::npos)
      << "the message must suggest the nearest name";
  EXPECT_EQ(refusal(RecorderAction::stop, change),
            "recorder: a rate, metrics or a file cannot be given with stop");
  EXPECT_EQ(recorder->running(), run);
  change = {};
  change.log = folder.path() + "/none/x.tsv";
  EXPECT_NE(refusal(RecorderAction::set, change).find("none"), std::string::npos);
  EXPECT_TRUE(recorder->recording()) << "the recorder must go on as before, in a new file";
  EXPECT_EQ(recorder->running()->log_path(), folder.path() + "/all-2.tsv");
  ASSERT_TRUE(recorder->control(RecorderAction::stop, {}));
  EXPECT_EQ(refusal(RecorderAction::stop), "recorder: it is not running");
  ASSERT_TRUE(recorder->stop());
  EXPECT_EQ(refusal(RecorderAction::start), "recorder: kymod is stopping");
}

TEST_F(RecorderTest, ARequestKeepsItsRecordingWhole) {
  make();
  ASSERT_TRUE(recorder->start());
  const std::string path = folder.path() + "/dump.tsv";
  RequestRecording recording =
      recorder->begin(path, monotonic_ns(), nlohmann::json::object()).value();
  EXPECT_EQ(recording.path(), path);
  EXPECT_EQ(refusal(RecorderAction::stop),
            "recorder: 1 request is being recorded: try again after the end (see kymo progress)");
  EXPECT_TRUE(recording.end(nlohmann::json::object()));
  const std::uint64_t until = recorder->latest()->wanted_until_ns;
  ASSERT_TRUE(recorder->control(RecorderAction::stop, {}))
      << "the stop waits until the second after the request has been recorded";
  EXPECT_GE(recorder->latest()->profiler().stats().duration_ns, until);
  EXPECT_EQ(metadata("dump")["state"], "ended");
  EXPECT_EQ(recorder->begin(folder.path() + "/two.tsv", monotonic_ns(), {}).value().path(), "")
      << "the recorder is stopped";
}

TEST_F(RecorderTest, SetWhileItStandsIsForTheNextStart) {
  config.profiling = false;
  config.profiling_log.clear();
  make();
  ASSERT_TRUE(recorder->start());
  EXPECT_EQ(recorder->latest(), nullptr);
  RecorderChange change;
  change.interval_us = 2000;
  ASSERT_TRUE(recorder->control(RecorderAction::set, change));
  EXPECT_EQ(recorder->latest(), nullptr);
  ASSERT_TRUE(recorder->control(RecorderAction::start, {}));
  EXPECT_EQ(recorder->running()->info().interval, std::chrono::milliseconds(2));
}

// Controls, requests, and readers of rows and counts at the same time. If the machine stands still for a second, a request
// gives up waiting for a control. No other refusal may occur.
TEST_F(RecorderTest, ControlsRequestsAndReadersWorkAtTheSameTime) {
  make();
  ASSERT_TRUE(recorder->start());
  std::atomic<bool> over{false};
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    const auto sampler = registry.sampler({}).value();
    std::vector<std::uint64_t> values(sampler->columns().size());
    while (!over) sampler->read(values.data());
  });
  threads.emplace_back([&] {
    while (!over) {
      if (const auto run = recorder->latest()) run->read(0, [](const Rows&) {});
      static_cast<void>(recorder->troubles());
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    // Only a few requests between two controls: each keeps a thread until its run ends, and no control is carried out
    // while a request is recorded.
    int few = 0;
    for (int n = 0, controls = 0; !over; ++n) {
      if (controls != done) {
        controls = done;
        few = 0;
      }
      if (++few <= 5) {
        auto recording = recorder->begin(folder.path() + "/r" + std::to_string(n) + ".tsv",
                                         monotonic_ns(), nlohmann::json::object());
        if (recording) {
          recording->mark("here");
          begun += recording->path().empty() ? 0 : 1;
        } else {
          EXPECT_EQ(recording.error().code, Code::unavailable) << recording.error().message;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t n = 0; done < 20 || begun < 20; ++n) {
        RecorderChange change;
        change.interval_us = 500 + n % 100;
        const RecorderAction action = thread == 0  ? RecorderAction::set
                                      : n % 2 == 0 ? RecorderAction::stop
                                                   : RecorderAction::start;
        if (action == RecorderAction::stop) change = {};
        if (recorder->control(action, change)) ++done;
      }
    });
  }
  threads[3].join();
  threads[4].join();
  over = true;
  for (int i = 0; i < 3; ++i) threads[static_cast<std::size_t>(i)].join();
  ASSERT_TRUE(recorder->stop());
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("all") && name.ends_with(".meta.json")) {
      std::ifstream file(entry.path());
      EXPECT_EQ(nlohmann::json::parse(file)["state"], "ended") << name;
    }
  }
}

}  // namespace
}  // namespace kymo::daemon
