#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "kymo/prometheus.h"

namespace kymo {
namespace {

TEST(PrometheusName, UsesBaseUnitsAndTotal) {
  EXPECT_EQ(prometheus_name({"frozen_time_us", "", Kind::counter, Unit::microseconds, {}}),
            "frozen_time_seconds_total");
  EXPECT_EQ(prometheus_name({"lag_ns", "", Kind::gauge, Unit::nanoseconds, {}}), "lag_seconds");
  EXPECT_EQ(prometheus_name({"image_bytes", "", Kind::counter, Unit::bytes, {}}),
            "image_bytes_total");
}

TEST(PrometheusName, SomebodysCounterNamedTotalGotAPrefixAndASecondTotal) {
  const Metric requests{"requests_total", "", Kind::counter, Unit::count, {}};
  EXPECT_EQ(prometheus_name(requests), "requests_total");
  EXPECT_EQ(prometheus_name(requests, "myapp_"), "myapp_requests_total");
  EXPECT_EQ(prometheus_name({"busy_total_us", "", Kind::counter, Unit::microseconds, {}}),
            "busy_seconds_total");
  EXPECT_EQ(prometheus_name({"total", "", Kind::counter, Unit::count, {}}), "total_total");
  EXPECT_EQ(prometheus_name({"memory_total", "", Kind::gauge, Unit::bytes, {}}), "memory_total");
}

TEST(PrometheusCollectable, SerializesCountersGaugesAndLabels) {
  Registry registry;
  registry
      .counter_family(
          {"calls", "Calls made", Kind::counter, Unit::count, {{"result", {"ok", "error"}}}})
      .value()
      .with({"error"})
      .value()
      .add(2);
  registry.counter({"frozen_time_us", "Time frozen", Kind::counter, Unit::microseconds, {}})
      .value()
      .add(1'500'000);
  ASSERT_TRUE(
      registry.callback({"phase", "Phase", Kind::gauge, Unit::count, {}}, [] { return 4ULL; }));
  const std::string text = ::prometheus::TextSerializer().Serialize(
      make_prometheus_collectable(registry, "kymo_")->Collect());
  EXPECT_NE(text.find("kymo_calls_total{result=\"error\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kymo_calls_total{result=\"ok\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE kymo_frozen_time_seconds_total counter\n"), std::string::npos);
  EXPECT_NE(text.find("kymo_frozen_time_seconds_total 1.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE kymo_phase gauge\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kymo_phase 4\n"), std::string::npos) << text;
}

TEST(PrometheusCollectable, AHelpIsOneLine) {
  Registry registry;
  ASSERT_TRUE(registry.counter({"steps", "Steps\nmade in C:\\", Kind::counter, Unit::count, {}}));
  const std::string text =
      ::prometheus::TextSerializer().Serialize(make_prometheus_collectable(registry)->Collect());
  EXPECT_NE(text.find("# HELP steps_total Steps\\nmade in C:\\\\\n"), std::string::npos) << text;
}

// Before, both were shown, and Prometheus refused each scrape of the program.
TEST(PrometheusCollectable, TwoRegistriesWithTheSameNameAreRefusedAtOnce) {
  Registry one;
  Registry other;
  const Metric steps{"steps", "", Kind::counter, Unit::count, {}};
  one.counter(steps).value().add(1);
  other.counter(steps).value().add(2);
  auto shown = make_prometheus_collectable(one, "app_");
  for (const Registry& again : {other, one}) {
    try {
      static_cast<void>(make_prometheus_collectable(again, "app_"));
      FAIL() << "not refused";
    } catch (const std::invalid_argument& refusal) {
      EXPECT_STREQ(refusal.what(),
                   "show metrics to Prometheus: another collectable of this process has "
                   "'app_steps_total', too, and Prometheus refuses a scrape with both; give one of "
                   "them another prefix, or register one collectable with several Exposers");
    }
  }
  const auto apart = make_prometheus_collectable(other, "other_");
  EXPECT_EQ(apart->Collect().size(), 1U);
  // Registered too late for a refusal: the older one stays.
  Registry late;
  const auto of_late = make_prometheus_collectable(late, "app_");
  late.counter(steps).value().add(3);
  late.counter({"walks", "", Kind::counter, Unit::count, {}}).value().add(4);
  const auto families = of_late->Collect();
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].name, "app_walks_total");
  shown.reset();
  EXPECT_EQ(of_late->Collect().size(), 2U) << "the name is free";
}

TEST(PrometheusCollectable, OutlivesItsRegistry) {
  auto registry = std::make_unique<Registry>();
  registry->counter({"steps", "", Kind::counter, Unit::count, {}}).value().add(5);
  const auto collectable = make_prometheus_collectable(*registry);
  registry.reset();
  Registry another;
  another.counter({"steps", "", Kind::counter, Unit::count, {}}).value().add(1'000'000);
  const std::string text = ::prometheus::TextSerializer().Serialize(collectable->Collect());
  EXPECT_NE(text.find("steps_total 5\n"), std::string::npos) << text;
}

TEST(PrometheusCollectable, ACallbackThatThrowsKeepsItsLastValueAndIsCounted) {
  Registry registry;
  bool fails = false;
  ASSERT_TRUE(
      registry.callback({"queued", "", Kind::gauge, Unit::count, {}}, [&]() -> std::uint64_t {
        if (fails) throw std::runtime_error("no queue");
        return 7;
      }));
  const auto collectable = make_prometheus_collectable(registry);
  EXPECT_EQ(collectable->Collect().at(0).metric.at(0).gauge.value, 7);
  fails = true;
  EXPECT_EQ(collectable->Collect().at(0).metric.at(0).gauge.value, 7);
  ASSERT_EQ(registry.callback_errors().size(), 1U);
  EXPECT_EQ(registry.callback_errors()[0].count, 1U);
}

TEST(PrometheusCollectable, AGaugeThatNeverHadAValueIsAbsentAndErrorsAreACounter) {
  Registry registry;
  bool fails = true;
  ASSERT_TRUE(
      registry.callback({"queued", "", Kind::gauge, Unit::count, {}}, [&]() -> std::uint64_t {
        if (fails) throw std::runtime_error("no queue");
        return 7;
      }));
  const auto collectable = make_prometheus_collectable(registry, "app_");
  const auto names_and_values = [&] {
    std::map<std::string, double> found;
    for (const auto& family : collectable->Collect()) {
      const auto& metric = family.metric.at(0);
      found[family.name] = family.type == ::prometheus::MetricType::Counter ? metric.counter.value
                                                                            : metric.gauge.value;
      EXPECT_EQ(metric.label.empty() ? "queued" : metric.label.at(0).value, "queued");
    }
    return found;
  };
  using Found = std::map<std::string, double>;
  EXPECT_EQ(names_and_values(), (Found{{"app_callback_errors_total", 1}}));
  fails = false;
  EXPECT_EQ(names_and_values(), (Found{{"app_callback_errors_total", 1}, {"app_queued", 7}}));
  fails = true;
  EXPECT_EQ(names_and_values(), (Found{{"app_callback_errors_total", 2}, {"app_queued", 7}}));
}

TEST(PrometheusCollectable, RefusesAPrefixThatPrometheusDoesNotAllow) {
  const Registry registry;
  for (const char* prefix : {"", "_", "my_app2_", "MyApp_"}) {
    EXPECT_NE(make_prometheus_collectable(registry, prefix), nullptr) << prefix;
  }
  for (const char* prefix : {"my-app.", "9x_", "a b", "\xc3\xa9_"}) {
    EXPECT_THROW(make_prometheus_collectable(registry, prefix), std::invalid_argument) << prefix;
  }
}

TEST(PrometheusCollectable, AHistogramIsOneMetricInBaseUnits) {
  Registry registry;
  const Histogram wait =
      registry.histogram({"wait_us", "Waits", Kind::counter, Unit::microseconds, {}}, {1, 4, 1})
          .value();
  for (const std::uint64_t value : {1U, 2U, 3U, 1'000'000U}) {
    wait.record(value);
  }
  ASSERT_TRUE(registry.callback({"phase", "", Kind::gauge, Unit::count, {}}, [] { return 4ULL; }));
  const auto families = make_prometheus_collectable(registry, "kymo_")->Collect();
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[1].name, "kymo_phase");
  const std::string text = ::prometheus::TextSerializer().Serialize(families);
  EXPECT_NE(text.find("# TYPE kymo_wait_seconds histogram\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kymo_wait_seconds_count 4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kymo_wait_seconds_bucket{le=\"+Inf\"} 4\n"), std::string::npos) << text;
  ASSERT_EQ(families[0].metric.size(), 1U);
  const auto& histogram = families[0].metric[0].histogram;
  EXPECT_DOUBLE_EQ(histogram.sample_sum, 1.000006);
  EXPECT_DOUBLE_EQ(histogram.bucket[1].upper_bound, 2e-6);
  EXPECT_EQ(histogram.bucket[1].cumulative_count, 2U);
  EXPECT_EQ(histogram.bucket[2].cumulative_count, 3U);
}

}  // namespace
}  // namespace kymo
