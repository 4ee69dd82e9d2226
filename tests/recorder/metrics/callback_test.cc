#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kymo/gauge.h"
#include "kymo/registry.h"

namespace kymo {
namespace {

Metric gauge(const std::string& name, std::vector<Field> fields = {}) {
  return {name, "help", Kind::gauge, Unit::count, std::move(fields)};
}

std::vector<std::uint64_t> sample(const Sampler& sampler) {
  std::vector<std::uint64_t> row(sampler.columns().size(), 99);
  sampler.read(row.data());
  return row;
}

using Row = std::vector<std::uint64_t>;

TEST(Gauge, IsWhatWasSetLastAndCannotDangle) {
  std::optional<Registry> registry(std::in_place);
  std::unique_ptr<Sampler> sampler;
  std::optional<Gauge> queued;
  {
    const Result<Gauge> made =
        make_gauge(*registry, {.name = "queued_bytes", .help = "help", .unit = Unit::bytes}, 3);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_FALSE(make_gauge(*registry, {.name = "queued_bytes", .help = "again"}, 0U));
    queued = *made;
    sampler = registry->sampler({}).value();
  }
  EXPECT_EQ(sampler->columns()[0].metric->kind, Kind::gauge);
  EXPECT_EQ(sample(*sampler), Row{3});
  queued->set(7);
  std::thread([copy = *queued] { copy.set(5U); }).join();
  EXPECT_EQ(sample(*sampler), Row{5}) << "it may fall";
  const Gauge last = *queued;
  queued.reset();
  registry.reset();
  EXPECT_EQ(sample(*sampler), Row{5});
  sampler.reset();
  last.set(9);  // nothing is there any more
}

TEST(Callback, OneThatThrowsIsCountedAndItsColumnKeepsItsLastValue) {
  Registry registry;
  bool fails = true;
  ASSERT_TRUE(registry.callback(gauge("queued"), [&]() -> std::uint64_t {
    if (fails) throw std::runtime_error("no\nqueue");
    return 7;
  }));
  ASSERT_TRUE(registry.callback(gauge("steady"), [] { return 3U; }));
  const auto sampler = registry.sampler({}).value();
  EXPECT_EQ(sample(*sampler), (Row{0, 3})) << "a callback that never returned has the value 0";
  EXPECT_FALSE(sampler->has_value(0)) << "which means nothing";
  EXPECT_TRUE(sampler->has_value(1));
  EXPECT_EQ(registry.callback_errors().size(), 1U);
  EXPECT_TRUE(registry.callback_errors()[0].no_value);
  fails = false;
  EXPECT_EQ(sample(*sampler), (Row{7, 3}));
  fails = true;
  EXPECT_EQ(sample(*sampler), (Row{7, 3}));
  EXPECT_EQ(sample(*registry.sampler({}).value()), (Row{7, 3})) << "another sampler";
  const std::vector<CallbackError> errors = registry.callback_errors();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].metric, "queued");
  EXPECT_EQ(errors[0].count, 3U);
  EXPECT_EQ(errors[0].what, "no queue") << "one line";
  EXPECT_FALSE(errors[0].no_value);
  EXPECT_TRUE(sampler->has_value(0));
}

TEST(Callback, ValuesThatAreProbablyNegativeAreCountedAndRecordedAsTheyAre) {
  Registry registry;
  std::uint64_t value = INT64_MAX;
  bool fails = false;
  ASSERT_TRUE(registry.callback_family(gauge("levels", {{"side", {"left", "right"}}}),
                                       [&](std::span<std::uint64_t> out) {
                                         if (fails) throw 5;
                                         out[0] = 1;
                                         out[1] = value;
                                       }));
  const auto sampler = registry.sampler({}).value();
  EXPECT_EQ(sample(*sampler), (Row{1, INT64_MAX}));
  EXPECT_TRUE(registry.callback_errors().empty());
  ++value;
  EXPECT_EQ(sample(*sampler), (Row{1, value}));
  std::vector<CallbackError> errors = registry.callback_errors();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(errors[0].negative);
  EXPECT_EQ(errors[0].count, 1U);
  EXPECT_EQ(errors[0].what,
            "9223372036854775808, which is -9223372036854775808 as a number with a sign, in "
            "levels[right]");
  fails = true;
  EXPECT_EQ(sample(*sampler), (Row{1, value})) << "the last values, which count no more";
  errors = registry.callback_errors();
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_FALSE(errors[0].negative);
  EXPECT_EQ(errors[1].count, 1U);
}

TEST(Callback, AFamilyThatThrowsHalfwayKeepsAllItsValues) {
  Registry registry;
  std::uint64_t value = 1;
  ASSERT_TRUE(registry.callback_family(gauge("jobs", {{"state", {"new", "old"}}}),
                                       [&](std::span<std::uint64_t> out) {
                                         EXPECT_EQ(out.size(), 2U);
                                         out[0] = value;
                                         if (value > 1) throw 5;
                                         out[1] = value;
                                       }));
  const auto sampler = registry.sampler({}).value();
  EXPECT_EQ(sample(*sampler), (Row{1, 1}));
  value = 2;
  EXPECT_EQ(sample(*sampler), (Row{1, 1}));
  EXPECT_EQ(registry.callback_errors().at(0).what, "not a std::exception");
}

TEST(Callback, NeverRunsTwiceAtOnce) {
  Registry registry;
  std::atomic<int> inside = 0;
  std::atomic<int> at_once = 0;
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(registry.callback(gauge(name), [&] {
      at_once += ++inside > 1 ? 1 : 0;
      for (int i = 0; i < 100; ++i) {
        std::this_thread::yield();
      }
      --inside;
      return 1U;
    }));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&registry] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(sample(*registry.sampler({}).value()), (Row{1, 1}));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(at_once, 0);
}

TEST(Callback, OneThatTakesASampleItselfGetsTheLastValues) {
  Registry registry;
  Row seen;
  ASSERT_TRUE(registry.callback(gauge("first"), [] { return 5U; }));
  ASSERT_TRUE(registry.callback(gauge("own"), [&] {
    seen = sample(*registry.sampler({}).value());
    return 6U;
  }));
  EXPECT_EQ(sample(*registry.sampler({}).value()), (Row{5, 6}));
  EXPECT_EQ(seen, (Row{5, 0}));
}

TEST(Callback, AForkedChildDoesNotWaitForAThreadThatItDoesNotHave) {
  Registry registry;
  ASSERT_TRUE(registry.callback(gauge("forks"), [forked = false]() mutable -> std::uint64_t {
    if (forked) return 4;
    forked = true;
    return 3;
  }));
  const auto sampler = registry.sampler({}).value();
  std::optional<int> status;
  ASSERT_TRUE(registry.callback(gauge("child"), [&]() -> std::uint64_t {
    const pid_t child = ::fork();
    if (child == 0) {
      // This thread was running the parent's callbacks when it forked. The child must be able to
      // run them, too.
      ::_exit(sample(*registry.sampler({"forks"}).value()) == Row{4} ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    status = ended;
    return 0;
  }));
  static_cast<void>(sample(*registry.sampler({}).value()));
  EXPECT_EQ(status, 0);
}

TEST(Callback, AForkedChildReadsASamplerOfItsParentWhileAnotherThreadWasInACallback) {
  Registry registry;
  std::atomic<bool> waits = true;
  std::atomic<bool> inside = false;
  ASSERT_TRUE(registry.callback(gauge("waits"), [&] {
    inside = true;
    while (waits) std::this_thread::yield();
    return 5U;
  }));
  const auto sampler = registry.sampler({}).value();
  std::thread other([&] { static_cast<void>(sample(*registry.sampler({}).value())); });
  while (!inside) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    waits = false;
    ::_exit(sample(*sampler) == Row{5} && sample(*registry.sampler({}).value()) == Row{5} ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  waits = false;
  other.join();
  EXPECT_EQ(sample(*sampler), Row{5});
}

TEST(Callback, AForkedChildUsesARegistryThatAThreadAsksForErrors) {
  Registry registry;
  ASSERT_TRUE(registry.callback(gauge("queued"), [] { return 5U; }));
  std::atomic<bool> over = false;
  std::thread asks([&] {
    while (!over) static_cast<void>(registry.callback_errors());
  });
  int failed = 0;
  for (int i = 0; i < 50 && failed == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(registry.columns().size() == 1 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  over = true;
  asks.join();
  EXPECT_EQ(failed, 0);
}

TEST(Registry, ASamplerThatOutlivesItShowedTheCountersOfAnotherRegistry) {
  auto registry = std::make_unique<Registry>();
  const Metric metric{"steps", "help", Kind::counter, Unit::count, {}};
  registry->counter(metric).value().add(5);
  ASSERT_TRUE(registry->callback(gauge("kept"), [kept = std::make_shared<int>(0)] { return 8U; }));
  const auto sampler = registry->sampler({}).value();
  registry.reset();
  Registry another;
  another.counter(metric).value().add(1'000'000);
  EXPECT_EQ(sample(*sampler), (Row{5, 8}));
}

TEST(Registry, ACopyIsTheSameMetrics) {
  Registry registry;
  const Counter steps = registry.counter({"steps", "help", Kind::counter, Unit::count, {}}).value();
  Registry copy = registry;
  ASSERT_TRUE(copy.callback(gauge("queued"), [] { return 2U; }));
  steps.add(4);
  EXPECT_EQ(sample(*registry.sampler({}).value()), (Row{4, 2}));
  EXPECT_FALSE(registry.callback(gauge("queued"), [] { return 2U; })) << "the name is already used";
  copy = Registry();
  EXPECT_EQ(copy.columns().size(), 0U);
  EXPECT_EQ(registry.columns().size(), 2U);
}

}  // namespace
}  // namespace kymo
