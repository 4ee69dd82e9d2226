// What stop() says about rows that are missing in the recording.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kymo/annotated_sink.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/trouble.h"
#include "support/temporary_folder.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

class LossesTest : public TemporaryFolderTest {
 protected:
  LossesTest() {
    EXPECT_TRUE(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}));
    options_.flush = std::chrono::milliseconds(5);
  }
  // Waits until the sink has written this many more rows.
  static void wait_for_rows(const Profiler& profiler, std::uint64_t rows) {
    const std::uint64_t before = profiler.stats().rows_written;
    while (profiler.stats().rows_written < before + rows) {
      std::this_thread::yield();
    }
  }
  // Waits until the watch says something, which it must say alone.
  static std::string next(TroubleWatch& watch) {
    for (;;) {
      const std::vector<Trouble> news = watch.look();
      EXPECT_LE(news.size(), 1U);
      if (!news.empty()) return news.front().text;
      std::this_thread::yield();
    }
  }
  Registry registry_;
  ProfilerOptions options_;
};

TEST_F(LossesTest, StopSaysHowManyRowsTheSinkRefused) {
  auto sink = std::make_shared<KeepingSink>();
  std::atomic<bool> full = true;
  sink->on_write = [&]() -> Result<void> {
    return full ? Result<void>(Error{Code::resource_exhausted, "the disk is full", 0})
                : Result<void>();
  };
  options_.sink = sink;
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().missed_sink_error == 0) {
    std::this_thread::yield();
  }
  full = false;
  wait_for_rows(profiler, 1);
  const Result<void> stopped = profiler.stop();
  const ProfilerStats stats = profiler.stats();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_EQ(stopped.error().message, "the recording lacks " +
                                         std::to_string(stats.missed_sink_error) + " of " +
                                         std::to_string(stats.ticks_due) +
                                         " ticks: " + std::to_string(stats.missed_sink_error) +
                                         " rows could not be kept (the disk is full)");
  EXPECT_EQ(sink->closed, 1);
  EXPECT_TRUE(profiler.stop()) << "a second stop() must not report it again";
}

TEST_F(LossesTest, StopSaysHowManyTicksFoundTheRingFull) {
  auto sink = std::make_shared<KeepingSink>();
  std::atomic<bool> stalls = true;
  sink->on_write = [&]() -> Result<void> {
    while (stalls) {
      std::this_thread::yield();
    }
    return {};
  };
  options_.sink = sink;
  options_.slots = 2;
  options_.rows = 2;
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().missed_ring_full == 0) {
    std::this_thread::yield();
  }
  stalls = false;
  const Result<void> stopped = profiler.stop();
  const ProfilerStats stats = profiler.stats();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message,
            "the recording lacks " + std::to_string(stats.missed_ring_full) + " of " +
                std::to_string(stats.ticks_due) + " ticks: for " +
                std::to_string(stats.missed_ring_full) +
                " ticks the ring was full, because the disk or sink was too slow");
}

// A sink of the program that throws where it is told to.
class SinkThatThrows : public KeepingSink {
 public:
  Result<void> write(const Rows& rows) override {
    if (in_write.exchange(false)) throw std::runtime_error("no room");
    return KeepingSink::write(rows);
  }
  void gap(const Gap& gap) override {
    if (in_gap) throw std::runtime_error("no list");
    KeepingSink::gap(gap);
  }
  void progress(const ProfilerStats& /*stats*/) override {
    progressed = true;
    if (in_progress) throw std::runtime_error("no progress");
  }
  Result<void> close(const ProfilerStats& stats) override {
    if (in_close) throw 5;
    return KeepingSink::close(stats);
  }
  std::atomic<bool> in_write = false;  // once
  std::atomic<bool> in_gap = false;
  std::atomic<bool> in_progress = false;
  std::atomic<bool> in_close = false;
  std::atomic<bool> progressed = false;
};

TEST_F(LossesTest, WhatTheSinkThrowsInWriteIsARefusalOfItsRows) {
  const auto sink = std::make_shared<SinkThatThrows>();
  sink->in_write = true;
  options_.sink = sink;
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 1);
  EXPECT_EQ(profiler.last_sink_error(), "the sink has thrown: no room");
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_NE(stopped.error().message.find(" rows could not be kept (the sink has thrown: no room)"),
            std::string::npos)
      << stopped.error().message;
  EXPECT_EQ(sink->kept.size(), profiler.stats().rows_written);
  EXPECT_EQ(sink->closed, 1);
}

TEST_F(LossesTest, WhatTheSinkThrowsElsewhereIsTheResultOfStop) {
  const auto progress = std::make_shared<SinkThatThrows>();
  progress->in_progress = true;
  const auto gap = std::make_shared<SinkThatThrows>();
  gap->in_gap = true;
  gap->in_write = true;  // so that there is a gap
  const auto close = std::make_shared<SinkThatThrows>();
  close->in_close = true;
  const std::vector<std::pair<std::shared_ptr<SinkThatThrows>, std::string>> sinks = {
      {progress, "the sink has thrown: no progress"},
      {gap, "the sink has thrown: no list; the recording lacks "},
      {close, "the sink has thrown: not a std::exception"}};
  for (const auto& [sink, message] : sinks) {
    options_.sink = sink;
    Profiler profiler(registry_, options_);
    ASSERT_TRUE(profiler.start());
    wait_for_rows(profiler, 1);
    while (sink == progress && !sink->progressed) {
      std::this_thread::yield();
    }
    const Result<void> stopped = profiler.stop();
    ASSERT_FALSE(stopped) << message;
    EXPECT_TRUE(stopped.error().message.starts_with(message)) << stopped.error().message;
    EXPECT_EQ(sink->kept.size(), profiler.stats().rows_written);
    EXPECT_TRUE(profiler.stop());
  }
  options_.sink = close;
  Profiler destroyed(registry_, options_);
  ASSERT_TRUE(destroyed.start());  // the destructor stops it
}

TEST_F(LossesTest, ATsvThatWasRemovedIsSaidAndTheRecordingGoesOnInTheNextPart) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  TroubleWatch watch(profiler);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  for (const char* ending : {".tsv", ".gaps.tsv", ".meta.json"}) {
    fs::remove(in_folder(std::string("run") + ending));
  }
  while (!fs::exists(in_folder("run.1.meta.json"))) {
    std::this_thread::yield();
  }
  wait_for_rows(profiler, 5);
  // Before, only stop() said it.
  while (profiler.last_sink_error().empty()) {
    std::this_thread::yield();
  }
  const std::string gone =
      in_folder("run.tsv") +
      " was removed or replaced by another program while it was recorded: of the rows that were "
      "written, " +
      std::to_string(profiler.lost_rows().rows) + " are gone; the recording goes on in " +
      in_folder("run.1.tsv");
  EXPECT_EQ(profiler.last_sink_error(), gone);
  const std::vector<Trouble> news = watch.look();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].text, gone);
  EXPECT_FALSE(news[0].over);
  EXPECT_EQ(news[0].ticks, profiler.lost_rows().rows);
  EXPECT_TRUE(watch.look().empty());
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  const std::size_t kept = lines(in_folder("run.1.tsv")).size() - 1;
  EXPECT_EQ(stopped.error().message,
            in_folder("run.tsv") +
                " was removed or replaced by another program while it was recorded: of the rows "
                "that were written, " +
                std::to_string(profiler.stats().rows_written - kept) +
                " are gone; the recording ends in " + in_folder("run.1.tsv"));
  EXPECT_GE(kept, 5U);
  EXPECT_FALSE(fs::exists(in_folder("run.tsv")));
  EXPECT_FALSE(fs::exists(in_folder("run.meta.json")))
      << "the metadata of the removed rows must be removed, too";
  const auto metadata = nlohmann::json::parse(content(in_folder("run.1.meta.json")));
  EXPECT_EQ(metadata["state"], "ended");
  EXPECT_EQ(metadata["stats"]["rows_written"], kept);
}

TEST_F(LossesTest, ATsvThatWasRemovedBeforeTheLastRowGoesOnInAnother) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  options_.interval = std::chrono::hours(1);
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  while (profiler.stats().rows_written == 0) std::this_thread::yield();
  fs::remove(in_folder("run.tsv"));
  // stop() writes the last row to the next part; the first row is gone.
  EXPECT_FALSE(profiler.stop());
  EXPECT_EQ(lines(in_folder("run.1.tsv")).size(), 2U);
}

// No row is lost, but the recording goes on in another file.
TEST_F(LossesTest, ATsvThatWasRemovedBeforeItsFirstRowIsSaid) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  options_.interval = std::chrono::seconds(20);  // so that its first row waits for the last one
  options_.flush = std::chrono::minutes(1);
  Profiler profiler(registry_, options_);
  TroubleWatch watch(profiler);
  ASSERT_TRUE(profiler.start());
  fs::remove(in_folder("run.tsv"));
  EXPECT_TRUE(profiler.stop()) << "nothing is lost";
  EXPECT_EQ(lines(in_folder("run.1.tsv")).size(), 3U);
  const std::string told = next(watch);
  EXPECT_TRUE(
      told.ends_with("before it had a row; the rows after are in " + in_folder("run.1.tsv")))
      << told;
  EXPECT_EQ(profiler.warnings(), std::vector<std::string>{told});
}

TEST_F(LossesTest, ATsvThatWasReplacedIsSaid) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  std::ofstream(in_folder("new")) << "another file";
  fs::rename(in_folder("new"), in_folder("run.tsv"));
  wait_for_rows(profiler, 5);
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("run.tsv was removed or replaced by another program"),
            std::string::npos)
      << stopped.error().message;
  EXPECT_EQ(content(in_folder("run.tsv")), "another file");
  EXPECT_TRUE(fs::exists(in_folder("run.1.tsv")));
}

TEST_F(LossesTest, ATsvThatWasCutOffIsSaid) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  fs::resize_file(in_folder("run.tsv"), 0);  // in the way of logrotate's `copytruncate`
  wait_for_rows(profiler, 5);
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("run.tsv was cut off by another program"),
            std::string::npos)
      << stopped.error().message;
}

TEST_F(LossesTest, ATsvWhoseFolderWasRemovedIsSaid) {
  fs::create_directory(in_folder("out"));
  options_.sink = make_tsv_sink(in_folder("out/run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  // Renames the folder first. Otherwise the recorder would begin the next part in the folder while
  // it is being emptied.
  fs::rename(in_folder("out"), in_folder("gone"));
  fs::remove_all(in_folder("gone"));
  while (profiler.stats().missed_sink_error == 0) {
    std::this_thread::yield();
  }
  EXPECT_NE(profiler.last_sink_error().find("out/run.tsv was removed or replaced"),
            std::string::npos);
  EXPECT_NE(profiler.last_sink_error().find("create its folder first"), std::string::npos);
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find(" are gone; the recording lacks "), std::string::npos)
      << stopped.error().message;
}

TEST_F(LossesTest, AMovedTsvIsWhole) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  TroubleWatch watch(profiler);
  EXPECT_TRUE(watch.look().empty());
  fs::rename(in_folder("run.tsv"), in_folder("moved.tsv"));
  // Before, nothing said where the rows were.
  const std::string told = next(watch);
  EXPECT_EQ(told, in_folder("run.tsv") + " was moved to " + in_folder("moved.tsv") +
                      " while it was recorded: its rows go on there; readers look for its gaps and "
                      "metadata in " +
                      in_folder("moved.gaps.tsv") + " and " + in_folder("moved.meta.json"));
  EXPECT_EQ(profiler.warnings(), std::vector<std::string>{told});
  wait_for_rows(profiler, 5);
  EXPECT_TRUE(watch.look().empty()) << "it is said once";
  EXPECT_TRUE(profiler.stop()) << "nothing is lost";
  EXPECT_EQ(lines(in_folder("moved.tsv")).size() - 1, profiler.stats().rows_written);
}

TEST_F(LossesTest, AListOfGapsThatWasRemovedIsSaid) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  TroubleWatch watch(profiler);
  fs::remove(in_folder("run.gaps.tsv"));
  // Before, only stop() said it.
  EXPECT_EQ(
      next(watch),
      in_folder("run.gaps.tsv") +
          " was removed or replaced by another program while it was recorded: the gaps that "
          "were in it are gone; the totals and the longest gaps in the metadata are complete");
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_EQ(
      stopped.error().message,
      in_folder("run.gaps.tsv") +
          " was removed or replaced by another program while it was recorded; the recording "
          "itself ended properly: its rows and totals are complete, and the metadata list its "
          "longest gaps, at most 100");
  EXPECT_EQ(nlohmann::json::parse(content(in_folder("run.meta.json")))["state"], "ended");
}

TEST_F(LossesTest, AnAnnotatedFileThatWasRemovedIsSaid) {
  options_.sink = make_annotated_sink(in_folder("run.log"), AnnotatedFormat::plain);
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  fs::remove(in_folder("run.log"));
  while (profiler.last_sink_error().empty()) {
    std::this_thread::yield();
  }
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_NE(stopped.error().message.find("run.log was removed or replaced"), std::string::npos);
}

}  // namespace
}  // namespace kymo
