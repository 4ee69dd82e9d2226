// How a profiler calls the callbacks of its metrics.

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kymo/flight_recorder.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/temporary_folder.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

class CallbacksTest : public TemporaryFolderTest {
 protected:
  Metric gauge(const std::string& name) { return {name, "help", Kind::gauge, Unit::count, {}}; }
  void wait_for_rows(const Profiler& profiler, std::uint64_t rows) {
    while (profiler.stats().rows_captured < rows) {
      std::this_thread::yield();
    }
  }
  Registry registry_;
};

TEST_F(CallbacksTest, StopInsideACallbackOfItsOwnProfilerIsRefusedAtOnce) {
  struct StoppingSink : Sink {
    std::function<void()> stop;
    Result<void> open(const RecordingInfo& /*info*/) override { return {}; }
    Result<void> write(const Rows& /*rows*/) override { return stop(), Result<void>(); }
    Result<void> close(const ProfilerStats& /*stats*/) override { return stop(), Result<void>(); }
  };
  std::mutex mutex;
  std::map<std::string, Code> codes;  // by who has called it
  std::atomic<Profiler*> current = nullptr;
  const auto stop = [&](const char* who) {
    if (Profiler* profiler = current.load()) {
      const Result<void> stopped = profiler->stop();
      const Result<void> started = profiler->start();
      const std::lock_guard lock(mutex);
      if (!stopped) codes[who] = stopped.error().code;
      EXPECT_FALSE(started);
      EXPECT_FALSE(stopped);
      EXPECT_NE(stopped.error().message.find("let another thread call it"), std::string::npos);
    }
  };
  const auto called_by = [&](const char* who) {
    const std::lock_guard lock(mutex);
    return codes.contains(who);
  };
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&] {
    stop("callback");
    return 1U;
  }));
  FlightRecorderOptions recording;
  recording.directory = in_folder("snapshots");
  recording.rules = {"queued > 0"};
  recording.fired = [&](const std::string&, const Result<std::string>&) { stop("fired"); };
  const auto sink = std::make_shared<StoppingSink>();
  sink->stop = [&] { stop("sink"); };
  for (const std::shared_ptr<Sink>& one :
       {std::shared_ptr<Sink>(std::make_shared<FlightRecorder>(recording)),
        std::shared_ptr<Sink>(sink)}) {
    ProfilerOptions options;
    options.sink = one;
    options.flush = std::chrono::milliseconds(10);
    Profiler profiler(registry_, options);
    current = &profiler;
    ASSERT_TRUE(profiler.start());
    while (!called_by(one == sink ? "sink" : "fired") || !called_by("callback")) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(profiler.running());
    EXPECT_TRUE(profiler.stop());
    current = nullptr;
  }
  EXPECT_EQ(codes["callback"], Code::failed_precondition);
  EXPECT_EQ(codes["fired"], Code::failed_precondition);
  EXPECT_EQ(codes["sink"], Code::failed_precondition);
}

TEST_F(CallbacksTest, OneThatThrowsIsNamedByTheWarningsAndTheMetadata) {
  std::atomic<bool> fails = false;
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&]() -> std::uint64_t {
    if (fails) throw std::runtime_error("the queue is closed");
    return 7;
  }));
  ASSERT_TRUE(registry_.callback(gauge("steady"), [] { return 3U; }));
  ProfilerOptions options;
  options.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  EXPECT_TRUE(profiler.warnings().empty());
  wait_for_rows(profiler, 3);
  fails = true;
  wait_for_rows(profiler, profiler.stats().rows_captured + 3);
  const Result<void> stopped = profiler.stop();
  const std::vector<CallbackError> errors = registry_.callback_errors();
  ASSERT_FALSE(stopped) << "a program as README shows it looks at nothing else";
  EXPECT_EQ(stopped.error().code, Code::data_loss);
  EXPECT_EQ(stopped.error().message, profiler.warnings()[0]);
  EXPECT_TRUE(profiler.stop());
  ASSERT_EQ(errors.size(), 1U);
  ASSERT_EQ(profiler.warnings().size(), 1U);
  EXPECT_EQ(profiler.warnings()[0],
            "metric 'queued': its callback has thrown " + std::to_string(errors[0].count) +
                " times, the last time: the queue is closed; its columns kept their last values "
                "meanwhile");
  const auto metadata = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(
      metadata["callback_errors"],
      nlohmann::json::parse(R"([{"metric": "queued", "count": )" + std::to_string(errors[0].count) +
                            R"(, "what": "the queue is closed"}])"));
  for (const std::string& line : lines(in_folder("run.tsv"))) {
    EXPECT_TRUE(line.ends_with("\tqueued\tsteady") || line.ends_with("\t7\t3")) << line;
  }
}

TEST_F(CallbacksTest, StopNamesTheFirstThatThrowsAndHowManyMore) {
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(registry_.callback(gauge(name), []() -> std::uint64_t { throw 5; }));
  }
  ProfilerOptions options;
  options.sink = std::make_shared<KeepingSink>();
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  const Result<void> stopped = profiler.stop();
  ASSERT_FALSE(stopped);
  EXPECT_TRUE(stopped.error().message.starts_with("metric 'one': its callback has thrown "))
      << stopped.error().message;
  EXPECT_TRUE(stopped.error().message.ends_with(
      "it has never returned a value, so its columns are 0 (2 more: see warnings())"))
      << stopped.error().message;
}

// Before, only the documentation said that such a value is recorded as 1.8e19.
TEST_F(CallbacksTest, OneThatReturnsANegativeValueIsNamedByTheWarningsAndTheMetadata) {
  const int level = -5;
  ASSERT_TRUE(registry_.callback(
      gauge("level"), [=]() -> std::uint64_t { return static_cast<std::uint64_t>(level); }));
  ProfilerOptions options;
  options.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 3);
  EXPECT_TRUE(profiler.stop()) << "the value may be meant, such as RLIM_INFINITY";
  const std::vector<CallbackError> errors = registry_.callback_errors();
  ASSERT_EQ(errors.size(), 1U);
  ASSERT_EQ(profiler.warnings().size(), 1U);
  EXPECT_EQ(profiler.warnings()[0],
            "values of metric 'level' are probably negative: they were 2^63 or more " +
                std::to_string(errors[0].count) +
                " times, the last time: 18446744073709551611, which is -5 as a number with a sign; "
                "for a value below zero, record its distance from a fixed lowest value");
  const auto metadata = nlohmann::json::parse(content(in_folder("run.meta.json")));
  EXPECT_EQ(metadata["callback_errors"][0]["negative"], true);
  EXPECT_EQ(metadata["callback_errors"][0]["count"], errors[0].count);
}

TEST_F(CallbacksTest, WhatWasThrownBeforeTheStartOrByOtherMetricsIsNotSaid) {
  bool fails = true;
  ASSERT_TRUE(registry_.callback(gauge("once"), [&]() -> std::uint64_t {
    if (fails) throw std::runtime_error("too early");
    return 1;
  }));
  ASSERT_TRUE(registry_.callback(gauge("always"), []() -> std::uint64_t { throw 5; }));
  std::vector<std::uint64_t> row(2);
  registry_.sampler({}).value()->read(row.data());
  fails = false;
  ProfilerOptions options;
  options.metrics = {"once"};
  options.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  ASSERT_TRUE(profiler.stop());
  EXPECT_EQ(registry_.callback_errors().size(), 2U);
  EXPECT_TRUE(profiler.warnings().empty());
  EXPECT_EQ(content(in_folder("run.meta.json")).find("callback_errors"), std::string::npos);
}

TEST_F(CallbacksTest, RunOnTheCollectorsThreadAsOftenAsIsSaid) {
  std::atomic<std::uint64_t> calls = 0;
  std::set<std::string> threads;  // needs no lock, because callbacks run one at a time
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&] {
    ++calls;
    threads.insert(name_of_this_thread());
    return 1U;
  }));
  ProfilerOptions options;
  options.sink = std::make_shared<KeepingSink>();
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  wait_for_rows(profiler, 5);
  ASSERT_TRUE(profiler.stop());
  EXPECT_EQ(threads, std::set<std::string>{"kymo-collector"});
  const std::uint64_t rows = profiler.stats().rows_captured;
  EXPECT_GT(calls, rows);
  EXPECT_LE(calls, rows + 200);
}

TEST_F(CallbacksTest, AreMeasuredBeforeTheClockOfTheRecordingStarts) {
  std::uint64_t first_call_ended_ns = 0;
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&] {
    if (first_call_ended_ns == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      first_call_ended_ns = monotonic_ns();
    }
    return 1U;
  }));
  const auto sink = std::make_shared<KeepingSink>();
  ProfilerOptions options;
  options.sink = sink;
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  ASSERT_TRUE(profiler.stop());
  EXPECT_GE(sink->opened_with.start_monotonic_ns, first_call_ended_ns);
}

// On a busy machine, the thread may wait for a CPU during its first sample.
TEST_F(CallbacksTest, AFirstCallThatWasHeldUpIsNotTheTimeOfASample) {
  int calls = 0;
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&] {
    if (++calls == 1) {
      // As if the thread waited for a CPU.
      std::this_thread::sleep_for(std::chrono::milliseconds(12));
    }
    return 1U;
  }));
  ProfilerOptions options;
  options.sink = std::make_shared<KeepingSink>();
  options.interval = std::chrono::milliseconds(10);
  Profiler profiler(registry_, options);
  ASSERT_TRUE(profiler.start());
  EXPECT_EQ(profiler.warnings(), std::vector<std::string>());
  ASSERT_TRUE(profiler.stop());
}

TEST_F(CallbacksTest, DoNotRunBesideAnotherProfilerOfTheRegistry) {
  std::atomic<int> inside = 0;
  std::atomic<int> at_once = 0;
  ASSERT_TRUE(registry_.callback(gauge("queued"), [&] {
    at_once += ++inside > 1 ? 1 : 0;
    std::this_thread::yield();
    --inside;
    return 1U;
  }));
  std::vector<std::unique_ptr<Profiler>> profilers;
  for (int i = 0; i < 3; ++i) {
    ProfilerOptions options;
    options.sink = std::make_shared<KeepingSink>();
    options.interval = std::chrono::microseconds(100);
    profilers.push_back(std::make_unique<Profiler>(registry_, options));
    ASSERT_TRUE(profilers.back()->start());
  }
  for (const auto& profiler : profilers) {
    wait_for_rows(*profiler, 200);
  }
  for (const auto& profiler : profilers) {
    static_cast<void>(profiler->stop());
  }
  EXPECT_EQ(at_once, 0);
}

// What is counted while a slow callback runs comes after the time of the row, as it comes after its values.
TEST(SlowCallbackTest, ARowHasTheTimeAtWhichItsCountersWereRead) {
  Registry registry;
  const Counter steps = registry.counter({"steps", "help"}).value();
  const auto sink = std::make_shared<KeepingSink>();
  ProfilerOptions options;
  options.sink = sink;
  options.interval = std::chrono::hours(1);
  Profiler profiler(registry, options);
  std::atomic<std::uint64_t> began_ns = 0;
  ASSERT_TRUE(registry.callback({"slow", "help", Kind::gauge}, [&] {
    began_ns = profiler.now_ns();
    steps.add();
    const std::uint64_t until_ns = monotonic_ns() + 1'000'000;
    while (monotonic_ns() < until_ns) {
    }
    return 1U;
  }));
  ASSERT_TRUE(profiler.start());
  const std::uint64_t first_began_ns = began_ns;
  ASSERT_TRUE(profiler.stop());
  ASSERT_EQ(sink->kept.size(), 2U);
  EXPECT_LE(sink->kept[0][0], first_began_ns);
  EXPECT_LE(sink->kept[1][0], began_ns);
  EXPECT_EQ(sink->kept[1][1] - sink->kept[0][1], 1U) << "counted after the first row";
}

}  // namespace
}  // namespace kymo
