// What a TroubleWatch says about callbacks and metrics while a profiler records.

#include "kymo/trouble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

// A callback that can be held up.
class Gate {
 public:
  std::uint64_t pass() {
    while (closed) {
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    inside = false;
    return 1;
  }
  std::atomic<bool> closed = false;
  std::atomic<bool> inside = false;
};

class TroubleTest : public ::testing::Test {
 protected:
  static Metric gauge(const std::string& name) {
    return {name, "help", Kind::gauge, Unit::count, {}};
  }
  void make() {
    ProfilerOptions options;
    options.sink = std::make_shared<KeepingSink>();
    profiler_.emplace(registry_, options);
    watch_.emplace(*profiler_);
  }
  // Waits until the watch says something, which it must say alone.
  Trouble next() {
    for (;;) {
      std::vector<Trouble> news = watch_->look();
      EXPECT_LE(news.size(), 1U);
      if (!news.empty()) return news.front();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void wait_for_rows(std::uint64_t more) {
    const std::uint64_t rows = profiler_->stats().rows_captured + more;
    while (profiler_->stats().rows_captured < rows) std::this_thread::yield();
  }
  // Looks at rows and not at the time: rows_captured does not stand still meanwhile.
  void expect_silence() {
    for (int i = 0; i < 20; ++i) {
      wait_for_rows(1);
      EXPECT_TRUE(watch_->look().empty());
    }
  }

  Gate gate_;  // before the registry, whose callbacks refer to it
  Registry registry_;
  std::optional<Profiler> profiler_;
  std::optional<TroubleWatch> watch_;
};

class OnTroubleTest : public TroubleTest {
 protected:
  OnTroubleTest() {
    EXPECT_TRUE(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}));
    sink_->on_write = [this]() -> Result<void> {
      return full_ ? Result<void>(Error{Code::resource_exhausted, "the disk is full", 0})
                   : Result<void>();
    };
    options_.sink = sink_;
    options_.flush = std::chrono::milliseconds(2);
  }
  std::atomic<bool> full_ = true;
  const std::shared_ptr<KeepingSink> sink_ = std::make_shared<KeepingSink>();
  ProfilerOptions options_;
};

// Before, nothing was said unless the program asked, and the destructor threw the loss away.
TEST_F(OnTroubleTest, TheDefaultIsALineOnStandardError) {
  testing::internal::CaptureStderr();
  {
    Profiler profiler(registry_, options_);
    ASSERT_TRUE(profiler.start());
    while (profiler.stats().missed_sink_error == 0) std::this_thread::yield();
    full_ = false;
    const std::uint64_t written = profiler.stats().rows_written;
    while (profiler.stats().rows_written == written) std::this_thread::yield();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(
      said.find(
          "kymo: the recording loses rows: the disk is full; missed ticks are counted until it "
          "takes rows again\n"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("kymo: the recording lacks "), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
}

TEST_F(OnTroubleTest, TheProgramCanTakeItOrWantNone) {
  std::vector<std::string> told;
  bool refused = false;
  testing::internal::CaptureStderr();
  for (const bool silent : {true, false}) {
    full_ = true;
    Profiler* running = nullptr;
    options_.on_trouble = [&](const Trouble& trouble) {
      told.push_back(trouble.text);
      refused = !running->stop();  // it would wait for this call
      throw std::runtime_error("dropped");
    };
    if (silent) options_.on_trouble = nullptr;
    Profiler profiler(registry_, options_);
    running = &profiler;
    ASSERT_TRUE(profiler.start());
    while (profiler.stats().missed_sink_error == 0) std::this_thread::yield();
    EXPECT_FALSE(profiler.stop());
    EXPECT_EQ(told.empty(), silent);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].find("the recording loses rows: the disk is full"), 0U) << told[0];
  EXPECT_TRUE(refused);
}

TEST_F(TroubleTest, EachCallbackThatThrowsIsSaidOnceWhileItIsRecorded) {
  std::atomic<bool> fails = false;
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&]() -> std::uint64_t {
    if (fails) throw std::runtime_error("the queue is closed");
    return 7;
  }));
  std::atomic<std::uint64_t> level = 1;
  ASSERT_TRUE(registry_.callback(gauge("level"), [&] { return level.load(); }));
  make();
  ASSERT_TRUE(profiler_->start());
  expect_silence();
  fails = true;
  const Trouble thrown = next();
  EXPECT_EQ(thrown.what, Trouble::What::callback_error);
  EXPECT_EQ(thrown.metric, "queued");
  EXPECT_FALSE(thrown.over);
  EXPECT_TRUE(thrown.text.starts_with("metric 'queued': its callback has thrown ")) << thrown.text;
  EXPECT_NE(thrown.text.find("the queue is closed"), std::string::npos) << thrown.text;
  expect_silence();
  level = static_cast<std::uint64_t>(-5);
  const Trouble negative = next();
  EXPECT_EQ(negative.what, Trouble::What::callback_error);
  EXPECT_EQ(negative.metric, "level");
  EXPECT_NE(negative.text.find("probably negative"), std::string::npos) << negative.text;
  expect_silence();
  EXPECT_FALSE(profiler_->stop());
  EXPECT_TRUE(watch_->look().empty());
}

TEST_F(TroubleTest, ACallbackThatDoesNotReturnIsNamedAndSoIsItsEnd) {
  ASSERT_TRUE(registry_.callback(gauge("steady"), [] { return 3U; }));
  ASSERT_TRUE(registry_.callback(gauge("stuck"), [this] { return gate_.pass(); }));
  ASSERT_TRUE(registry_.callback(gauge("last"), [] { return 3U; }));
  make();
  ASSERT_TRUE(profiler_->start());
  expect_silence();
  gate_.closed = true;
  const Trouble hangs = next();
  EXPECT_EQ(hangs.what, Trouble::What::callback_hangs);
  EXPECT_EQ(hangs.metric, "stuck");
  EXPECT_FALSE(hangs.over);
  EXPECT_TRUE(hangs.text.starts_with("the callback of metric 'stuck' has not returned for "))
      << hangs.text;
  EXPECT_EQ(profiler_->running_callback().metric, "stuck");
  EXPECT_GE(profiler_->running_callback().waited, TroubleWatch::kHangs);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(watch_->look().empty());
  gate_.closed = false;
  const Trouble returned = next();
  EXPECT_TRUE(returned.over);
  EXPECT_EQ(returned.what, Trouble::What::callback_hangs);
  EXPECT_EQ(returned.metric, "stuck");
  expect_silence();
  EXPECT_TRUE(profiler_->stop());
}

// The collector then waits for the thread that scrapes.
TEST_F(TroubleTest, ACallbackThatDoesNotReturnToAScrapeIsNamed) {
  std::atomic<bool> scrapes = false;
  ASSERT_TRUE(registry_.callback(gauge("stuck"), [&] { return scrapes ? gate_.pass() : 1; }));
  make();
  ASSERT_TRUE(profiler_->start());
  gate_.closed = true;
  std::thread scrape([&] {
    std::vector<std::uint64_t> row(1);
    scrapes = true;
    registry_.sampler({}).value()->read(row.data());
  });
  EXPECT_EQ(next().metric, "stuck");
  gate_.closed = false;
  EXPECT_TRUE(next().over);
  scrape.join();
  EXPECT_TRUE(profiler_->stop());
}

TEST_F(TroubleTest, StartNamesTheCallbackThatItWaitsFor) {
  ASSERT_TRUE(registry_.callback(gauge("stuck"), [this] { return gate_.pass(); }));
  gate_.closed = true;
  make();
  const Result<void> started = profiler_->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::deadline_exceeded);
  EXPECT_EQ(started.error().message,
            "start the recorder: the callback of metric 'stuck' has not returned for 5 s; start "
            "again once it has returned");
  gate_.closed = false;
  ASSERT_TRUE(profiler_->start()) << "it can be started again";
  EXPECT_TRUE(profiler_->stop());
}

TEST_F(TroubleTest, StopNamesTheCallbackThatItWaitsFor) {
  ASSERT_TRUE(registry_.callback(gauge("stuck"), [this] { return gate_.pass(); }));
  make();
  ASSERT_TRUE(profiler_->start());
  gate_.closed = true;
  while (!gate_.inside) std::this_thread::yield();
  const Result<void> stopped = profiler_->stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::deadline_exceeded);
  EXPECT_EQ(stopped.error().message,
            "stop the recorder: the callback of metric 'stuck' has not returned for 5 s; its "
            "thread and memory stay in use: stop again once it has returned");
  gate_.closed = false;
  EXPECT_TRUE(profiler_->stop());
}

TEST_F(TroubleTest, MetricsThatWereRegisteredAfterTheStartAreNamedOnce) {
  ASSERT_TRUE(registry_.counter({"early", "help", Kind::counter, Unit::count, {}}));
  ASSERT_TRUE(registry_.histogram({"sizes_bytes", "help", Kind::counter, Unit::bytes, {}}));
  make();
  ASSERT_TRUE(profiler_->start());
  EXPECT_TRUE(watch_->look().empty());
  ASSERT_TRUE(registry_.histogram({"late_ns", "help", Kind::counter, Unit::nanoseconds, {}}));
  ASSERT_TRUE(registry_.callback(gauge("later"), [] { return 1U; }));
  const Trouble unrecorded = next();
  EXPECT_EQ(unrecorded.what, Trouble::What::unrecorded);
  EXPECT_EQ(unrecorded.text,
            "not recorded, because registered after the recorder was started: late_ns, later");
  EXPECT_EQ(profiler_->warnings(), std::vector<std::string>{unrecorded.text});
  expect_silence();
  ASSERT_TRUE(registry_.callback(gauge("last"), [] { return 1U; }));
  EXPECT_EQ(next().text, "not recorded, because registered after the recorder was started: last");
  EXPECT_TRUE(profiler_->stop());
  ASSERT_TRUE(registry_.callback(gauge("next"), [] { return 1U; }));
  EXPECT_TRUE(watch_->look().empty()) << "it is for the next recording";
  EXPECT_EQ(profiler_->unrecorded_metrics(),
            (std::vector<std::string>{"late_ns", "later", "last"}));
}

TEST_F(TroubleTest, MetricsThatTheProgramDidNotChooseAreNotMissed) {
  ASSERT_TRUE(registry_.counter({"early", "help", Kind::counter, Unit::count, {}}));
  ProfilerOptions options;
  options.sink = std::make_shared<KeepingSink>();
  options.metrics = {"early"};
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  ASSERT_TRUE(registry_.counter({"late", "help", Kind::counter, Unit::count, {}}));
  EXPECT_TRUE(TroubleWatch(profiler).look().empty());
  EXPECT_TRUE(profiler.stop());
}

}  // namespace
}  // namespace kymo
