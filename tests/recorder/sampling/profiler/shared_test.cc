// Profilers that outlive their registry, and sinks that were given to two profilers.

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kymo/annotated_sink.h"
#include "kymo/flight_recorder.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "support/temporary_folder.h"
#include "support/test_sinks.h"

namespace kymo {
namespace {

Metric steps() {
  return {"steps", "help", Kind::counter, Unit::count, {}};
}

class SharedTest : public TemporaryFolderTest {
 protected:
  SharedTest() : counter_(registry_.counter(steps()).value()) {}
  ProfilerOptions to(std::shared_ptr<Sink> sink) {
    ProfilerOptions options;
    options.sink = std::move(sink);
    return options;
  }
  // Gives `sink` to two profilers, and returns the error of the second one.
  std::string second_start(const std::shared_ptr<Sink>& sink) {
    Profiler first(registry_, to(sink));
    EXPECT_TRUE(first.start());
    Profiler second(registry_, to(sink));
    const Result<void> started = second.start();
    EXPECT_TRUE(second.stop()) << "a profiler that did not start has nothing to stop";
    EXPECT_TRUE(first.stop());
    return started ? "started" : started.error().message;
  }
  Registry registry_;
  Counter counter_;
};

constexpr const char* kRefused =
    "cannot start the profiler: this sink is in use by another profiler; make a sink for each "
    "profiler";

TEST(Profiler, ShowedTheCountersOfAnotherRegistryWhenItsOwnWentFirst) {
  auto registry = std::make_unique<Registry>();
  registry->counter(steps()).value().add(5);
  const auto sink = std::make_shared<KeepingSink>();
  ProfilerOptions options;
  options.sink = sink;
  Profiler profiler(*registry, options);
  registry.reset();
  Registry another;
  const Counter other = another.counter(steps()).value();
  ASSERT_TRUE(profiler.start());
  other.add(1'000'000);
  ASSERT_TRUE(profiler.stop());
  ASSERT_FALSE(sink->kept.empty());
  EXPECT_EQ(sink->kept.back()[1], 5U);
}

TEST_F(SharedTest, ASinkThatOutlivesItsProfilerDoesNotKeepTheColumns) {
  const auto sink = std::make_shared<FlightRecorder>(FlightRecorderOptions{});
  const auto keeps_info = std::make_shared<KeepingSink>();
  std::weak_ptr<int> alive;
  {
    Registry registry;
    const auto owned = std::make_shared<int>(0);
    alive = owned;
    ASSERT_TRUE(registry.callback({"queued", "help", Kind::gauge, Unit::count, {}},
                                  [owned]() -> std::uint64_t { throw 5; }));
    for (const std::shared_ptr<Sink>& to_use :
         {std::shared_ptr<Sink>(sink), std::shared_ptr<Sink>(keeps_info)}) {
      Profiler profiler(registry, to(to_use));
      ASSERT_TRUE(profiler.start());
      ASSERT_FALSE(profiler.stop()) << "the callback has thrown";
    }
  }
  EXPECT_TRUE(alive.expired());
  ASSERT_EQ(keeps_info->opened_with.callback_errors().size(), 1U)
      << "the error must be kept after the registry is gone";
}

TEST_F(SharedTest, ASinkWhoseOpenFailedDoesNotKeepTheColumns) {
  const auto sink = make_annotated_sink(in_folder("none/run.log"), AnnotatedFormat::plain);
  std::weak_ptr<int> alive;
  {
    Registry registry;
    const auto owned = std::make_shared<int>(0);
    alive = owned;
    ASSERT_TRUE(registry.callback({"queued", "help", Kind::gauge, Unit::count, {}},
                                  [owned] { return 1U; }));
    Profiler profiler(registry, to(sink));
    ASSERT_FALSE(profiler.start());
  }
  EXPECT_TRUE(alive.expired());
}

TEST_F(SharedTest, TheRecordersOwnCountsOutliveIt) {
  {
    Profiler profiler(registry_, to(std::make_shared<KeepingSink>()));
    ASSERT_TRUE(register_profiler_metrics(registry_, profiler));
    ASSERT_TRUE(profiler.start());
    ASSERT_TRUE(profiler.stop());
  }
  std::uint64_t rows = 0;
  registry_.sampler({"profiler_rows"}).value()->read(&rows);
  EXPECT_GT(rows, 0U);
}

TEST_F(SharedTest, ASinkInTwoProfilersWroteACorruptFile) {
  EXPECT_EQ(second_start(make_tsv_sink(in_folder("run.tsv"))), kRefused);
  EXPECT_EQ(second_start(make_annotated_sink(in_folder("run.log"), AnnotatedFormat::plain)),
            kRefused);
  EXPECT_EQ(second_start(std::make_shared<FlightRecorder>(FlightRecorderOptions{})), kRefused);
  EXPECT_EQ(second_start(std::make_shared<KeepingSink>()), kRefused);
}

// A user's sink that passes everything to another sink.
class PassingSink : public Sink {
 public:
  explicit PassingSink(std::shared_ptr<Sink> other) : other_(std::move(other)) {}
  Result<void> open(const RecordingInfo& info) override { return other_->open(info); }
  Result<void> write(const Rows& rows) override { return other_->write(rows); }
  Result<void> close(const ProfilerStats& stats) override { return other_->close(stats); }

 private:
  std::shared_ptr<Sink> other_;
};

TEST_F(SharedTest, ASinkBehindTwoOthersIsRefusedByItsOpen) {
  const std::vector<std::shared_ptr<Sink>> sinks = {
      make_tsv_sink(in_folder("run.tsv")),
      make_annotated_sink(in_folder("run.log"), AnnotatedFormat::plain),
      std::make_shared<FlightRecorder>(FlightRecorderOptions{})};
  for (const std::shared_ptr<Sink>& sink : sinks) {
    Profiler first(registry_, to(std::make_shared<PassingSink>(sink)));
    ASSERT_TRUE(first.start());
    Profiler second(registry_, to(std::make_shared<PassingSink>(sink)));
    const Result<void> started = second.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::failed_precondition);
    EXPECT_NE(started.error().message.find("this sink is in use by another profiler"),
              std::string::npos);
    EXPECT_TRUE(first.stop());
  }
}

class ThrowingSink : public KeepingSink {
 public:
  Result<void> open(const RecordingInfo& info) override {
    if (throws) throw std::runtime_error("no sink");
    return KeepingSink::open(info);
  }
  bool throws = true;
};

TEST_F(SharedTest, ASinkIsFreeAgainAfterItsOpenThrew) {
  const auto sink = std::make_shared<ThrowingSink>();
  Profiler profiler(registry_, to(sink));
  const Result<void> started = profiler.start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find("the sink has thrown: no sink"), std::string::npos)
      << started.error().message;
  sink->throws = false;
  ASSERT_TRUE(profiler.start());
  EXPECT_TRUE(profiler.stop());
}

TEST_F(SharedTest, ASinkIsFreeAgainAfterTheStopAndAfterAFailedStart) {
  const auto recorder = std::make_shared<FlightRecorder>(FlightRecorderOptions{});
  for (int i = 0; i < 2; ++i) {
    Profiler profiler(registry_, to(recorder));
    ASSERT_TRUE(profiler.start());
    ASSERT_TRUE(profiler.stop());
  }
  const auto sink = make_tsv_sink(in_folder("none/run.tsv"));
  for (int i = 0; i < 2; ++i) {
    Profiler profiler(registry_, to(sink));
    const Result<void> started = profiler.start();
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().message.find("create its folder first"), std::string::npos);
  }
}

}  // namespace
}  // namespace kymo
