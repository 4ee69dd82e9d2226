#include "kymo/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kymo {
namespace {

Metric metric(const std::string& name, Unit unit = Unit::count, std::vector<Field> fields = {}) {
  return {name, "help", Kind::counter, unit, std::move(fields)};
}

std::string refusal(const Metric& refused) {
  Registry registry;
  const Result<CounterFamily> result = registry.counter_family(refused);
  return result ? "accepted" : result.error().message;
}

TEST(Registry, RefusesMalformedNames) {
  for (const char* name : {"", "Pages", "9lives", "a-b", "a b", "a\tb", "_a"}) {
    EXPECT_NE(refusal(metric(name)).find("a name is [a-z][a-z0-9_]*"), std::string::npos) << name;
  }
  EXPECT_NE(refusal(metric(std::string(65, 'a'))), "accepted");
  EXPECT_EQ(refusal(metric(std::string(64, 'a'))), "accepted");
}

TEST(Registry, RefusesANameWithoutItsUnit) {
  EXPECT_EQ(refusal(metric("frozen", Unit::microseconds)),
            "metric 'frozen': because of its unit, its name must end in '_us'");
  EXPECT_EQ(refusal(metric("frozen_us", Unit::microseconds)), "accepted");
  EXPECT_NE(refusal(metric("written", Unit::bytes)), "accepted");
}

TEST(Registry, ATimeWasAcceptedAsACount) {
  EXPECT_EQ(refusal(metric("wait_us")),
            "metric 'wait_us': its name ends in '_us', but its unit is count: set .unit = "
            "kymo::Unit::microseconds, or choose another name");
  EXPECT_NE(refusal(metric("wait_ns")).find("kymo::Unit::nanoseconds"), std::string::npos);
  EXPECT_NE(refusal(metric("memory_bytes", Unit::pages)).find("its unit is pages"),
            std::string::npos);
  EXPECT_EQ(refusal(metric("wait_ms")),
            "metric 'wait_ms': its name ends in '_ms', a unit that no column has: record "
            "microseconds ('_us') or nanoseconds ('_ns')");
  EXPECT_NE(refusal(metric("uptime_seconds")), "accepted");
  EXPECT_EQ(refusal(metric("bonus")), "accepted");
  EXPECT_EQ(refusal(metric("bus")), "accepted");
}

// Before, `{10, 100, 1000}` gave columns such as h_us[1001-1], and a counter or a gauge with bounds
// ended the next scrape in a segmentation fault.
TEST(Registry, BoundsOfTheCallerWereTakenForThoseOfAHistogram) {
  Registry registry;
  Metric bounded = metric("bounded");
  bounded.bounds = {1, 2};
  const std::string why =
      "metric 'bounded': leave its bounds empty: the registry sets those of a histogram, which you "
      "choose by the second argument of histogram(), kymo::HistogramBuckets";
  EXPECT_EQ(registry.counter(bounded).error().message, why);
  EXPECT_EQ(registry.counter_family(bounded).error().message, why);
  EXPECT_EQ(registry.histogram(bounded).error().message, why);
  EXPECT_EQ(registry.histogram(bounded, {1, 8, 1}).error().message, why);
  bounded.kind = Kind::gauge;
  EXPECT_EQ(registry.callback(bounded, [] { return 1U; }).error().message, why);
  EXPECT_EQ(registry.callback_family(bounded, [](std::span<std::uint64_t>) {}).error().message,
            why);
  EXPECT_TRUE(registry.columns().empty());
}

TEST(Registry, RefusesAUnitOrAKindThatIsNone) {
  EXPECT_EQ(refusal(metric("a", static_cast<Unit>(77))),
            "metric 'a': its unit is none of kymo::Unit");
  Metric odd = metric("a");
  odd.kind = static_cast<Kind>(9);
  EXPECT_NE(refusal(odd), "accepted");
}

TEST(Registry, ManyOtherTimesAndSizesWereAcceptedAsACount) {
  for (const char* name :
       {"time_s", "wait_sec", "latency_nanoseconds", "latency_micros", "wait_msec", "up_days"}) {
    EXPECT_NE(refusal(metric(name)).find("record microseconds ('_us')"), std::string::npos) << name;
  }
  for (const char* name : {"size_kb", "used_mib", "sent_gbytes"}) {
    EXPECT_NE(refusal(metric(name)).find("record bytes ('_bytes')"), std::string::npos) << name;
  }
  for (const char* name : {"depth_min", "s", "jobs", "mb", "steps", "process"}) {
    EXPECT_EQ(refusal(metric(name)), "accepted") << name;
  }
}

// Prometheus refuses a whole scrape in which a name appears twice.
TEST(Registry, RefusesTheSameNameOnMetricsTwice) {
  Registry registry;
  ASSERT_TRUE(registry.counter(metric("requests")));
  const Result<Counter> again = registry.counter(metric("requests_total"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::already_exists);
  EXPECT_EQ(again.error().message,
            "metric 'requests_total': on /metrics its name is 'requests_total', which metric "
            "'requests' has there already; choose another name");
  ASSERT_TRUE(registry.histogram(metric("wait_us", Unit::microseconds)));
  EXPECT_NE(registry.histogram(metric("wait_ns", Unit::nanoseconds))
                .error()
                .message.find("'wait_seconds', which metric 'wait_us'"),
            std::string::npos);
  const Metric sum{"wait_seconds_sum", "help", Kind::gauge, Unit::count};
  EXPECT_FALSE(registry.callback(sum, [] { return 1U; })) << "a name of the histogram";
  EXPECT_TRUE(registry.counter(metric("wait_ns", Unit::nanoseconds)))
      << "the name of a counter ends in _total";
}

TEST(Registry, RefusesTheNamesOfPrometheusOwnLabels) {
  for (const char* name : {"le", "quantile"}) {
    EXPECT_EQ(refusal(metric("a", Unit::count, {{name, {"x"}}})),
              std::string("metric 'a': the field name '") + name +
                  "' belongs to Prometheus's own histograms and summaries; choose another name");
  }
}

TEST(Registry, RefusesBadFields) {
  EXPECT_NE(refusal(metric("a", Unit::count, {{"f", {}}})).find("has no values"),
            std::string::npos);
  EXPECT_NE(refusal(metric("a", Unit::count, {{"f", {"x", "x"}}})).find("'x' twice"),
            std::string::npos);
  EXPECT_NE(refusal(metric("a", Unit::count, {{"f", {"x,y"}}})).find("'x,y'"), std::string::npos);
  EXPECT_NE(refusal(metric("a", Unit::count, {{"f", {"x"}}, {"f", {"y"}}})).find("is given twice"),
            std::string::npos);
}

TEST(Registry, RefusesAHelpThatIsNoText) {
  Registry registry;
  for (const std::string& help : {std::string("half of \xc3"), std::string("a\0b", 3)}) {
    Metric bad = metric("a");
    bad.help = help;
    EXPECT_EQ(registry.counter(bad).error().message,
              "metric 'a': its help text is not valid UTF-8, or has a zero byte");
  }
  Metric good = metric("a");
  good.help = "Größe, \"quoted\",\non two lines";
  EXPECT_TRUE(registry.counter(good));
}

TEST(Registry, NamesTheCallThatWouldTakeTheMetric) {
  Registry registry;
  const Metric with_field = metric("a", Unit::count, {{"f", {"x"}}});
  EXPECT_EQ(registry.counter(with_field).error().message,
            "metric 'a' has fields; register it with counter_family()");
  EXPECT_EQ(registry.callback(with_field, [] { return 0ULL; }).error().message,
            "metric 'a' has fields; register it with callback_family()");
  EXPECT_EQ(registry.counter({"a", "help", Kind::gauge, Unit::count, {}}).error().message,
            "metric 'a' is a gauge; register it with callback()");
}

TEST(Registry, RefusesADuplicate) {
  Registry registry;
  ASSERT_TRUE(registry.counter(metric("dumps")));
  const Result<Counter> again = registry.counter(metric("dumps"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::already_exists);
  EXPECT_EQ(again.error().message, "metric 'dumps' is registered already; names are unique");
  EXPECT_FALSE(registry.callback(metric("dumps"), [] { return 0ULL; }));
}

TEST(Registry, RefusesMoreColumnsThanThereAreCells) {
  const auto numbers = [](std::size_t count) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(std::to_string(i));
    }
    return values;
  };
  const auto wide = [&](std::size_t columns) {
    return metric("wide", Unit::count, {{"f", numbers(columns)}});
  };
  Registry registry;
  const Result<CounterFamily> refused = registry.counter_family(wide(kMaxCells + 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::resource_exhausted);
  EXPECT_NE(refused.error().message.find("'wide' has 4097 columns"), std::string::npos);
  // The registry must refuse this before it makes 10^12 columns.
  EXPECT_FALSE(registry.counter_family(
      metric("vast", Unit::count,
             {{"f", numbers(10'000)}, {"g", numbers(10'000)}, {"h", numbers(10'000)}})));
  Registry roomy;
  EXPECT_TRUE(roomy.counter_family(wide(kMaxCells)));
  EXPECT_FALSE(registry.counter(metric("one_more")));
}

TEST(Registry, TheColumnsOfAMetricShareIt) {
  Registry registry;
  ASSERT_TRUE(registry.counter_family(metric("calls", Unit::count, {{"f", {"a", "b"}}})));
  const std::vector<Column> columns = registry.columns();
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].metric, columns[1].metric);
  EXPECT_EQ(registry.sampler({}).value()->columns()[1].metric, columns[0].metric);
}

TEST(Registry, NamesOneColumnForEachCombination) {
  Registry registry;
  const CounterFamily calls =
      registry
          .counter_family(metric("calls", Unit::count,
                                 {{"call", {"dump", "restore"}}, {"result", {"ok", "no"}}}))
          .value();
  calls.with({"restore", "ok"}).value().add(7);
  std::vector<std::string> names;
  for (const Column& column : registry.columns()) {
    names.push_back(column.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"calls[dump,ok]", "calls[dump,no]",
                                             "calls[restore,ok]", "calls[restore,no]"}));
  std::vector<std::uint64_t> values(4);
  registry.sampler({}).value()->read(values.data());
  EXPECT_EQ(values, (std::vector<std::uint64_t>{0, 0, 7, 0}));
  EXPECT_EQ(calls.with({"restore", "maybe"}).error().message,
            "metric 'calls': its field 'result' has no value 'maybe'; it has: ok, no");
  EXPECT_EQ(calls.with({"restore"}).error().message,
            "metric 'calls': give one value for each of its fields (call, result), not 1");
}

TEST(Registry, SamplesTheMetricsThatWereNamed) {
  Registry registry;
  const Counter a = registry.counter(metric("alpha")).value();
  ASSERT_TRUE(
      registry.callback({"beta", "help", Kind::gauge, Unit::count, {}}, [] { return 5ULL; }));
  const Counter c = registry.counter(metric("gamma")).value();
  a.add(1);
  c.add(3);
  std::vector<std::uint64_t> values(3);
  registry.sampler({}).value()->read(values.data());
  EXPECT_EQ(values, (std::vector<std::uint64_t>{1, 5, 3}));
  const auto sampler = registry.sampler({"gamma", "beta"}).value();
  ASSERT_EQ(sampler->columns().size(), 2U);
  sampler->read(values.data());
  EXPECT_EQ(values[0], 5U);
  EXPECT_EQ(values[1], 3U);
}

TEST(Registry, NamesTheNearOnesForAnUnknownMetric) {
  Registry registry;
  ASSERT_TRUE(registry.counter(metric("pages_written")));
  const auto none = registry.sampler({"pages_writen"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no metric is named 'pages_writen'; did you mean pages_written?");
}

TEST(Registry, HasNothingToSampleWhenEmpty) {
  EXPECT_FALSE(Registry().sampler({}));
}

TEST(Registry, AFamilyOfCallbacksFillsAColumnForEachCombination) {
  Registry registry;
  const Metric family{
      "jobs", "Help", Kind::gauge, Unit::count, {{"state", {"new", "old"}}, {"size", {"s", "l"}}}};
  ASSERT_TRUE(registry.counter({"steps", "Help", Kind::counter, Unit::count, {}}));
  ASSERT_TRUE(registry.callback_family(family, [](std::span<std::uint64_t> out) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      out[i] = 10 + i;
    }
  }));
  ASSERT_TRUE(registry.callback({"last", "Help", Kind::gauge, Unit::count, {}}, [] { return 9U; }));
  EXPECT_FALSE(registry.callback_family(family, [](std::span<std::uint64_t>) {}))
      << "the name is already used";
  const auto sampler = registry.sampler({}).value();
  ASSERT_EQ(sampler->columns().size(), 6U);
  EXPECT_EQ(sampler->columns()[2].name, "jobs[new,l]");
  std::vector<std::uint64_t> row(6);
  sampler->read(row.data());
  EXPECT_EQ(row, (std::vector<std::uint64_t>{0, 10, 11, 12, 13, 9}));
}

}  // namespace
}  // namespace kymo
