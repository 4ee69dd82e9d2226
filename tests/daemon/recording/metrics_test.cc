#include "daemon/recording/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "daemon/recording/recorder.h"
#include "kymo/prometheus.h"

namespace kymo::daemon {
namespace {

std::map<std::string, std::uint64_t> values(Registry& registry) {
  const auto sampler = registry.sampler({}).value();
  std::vector<std::uint64_t> row(sampler->columns().size());
  sampler->read(row.data());
  std::map<std::string, std::uint64_t> out;
  for (std::size_t i = 0; i < row.size(); ++i) out[sampler->columns()[i].name] = row[i];
  return out;
}

TEST(MetricsTest, ARequestThatIsWrongIsRefusedAndNoFailure) {
  EXPECT_EQ(result_of({}, true), RequestResult::ok);
  EXPECT_EQ(result_of(Error{Code::not_found, ""}, false), RequestResult::refused);
  EXPECT_EQ(result_of(Error{Code::failed_precondition, ""}, false), RequestResult::refused);
  EXPECT_EQ(result_of(Error{Code::not_found, ""}, true), RequestResult::error) << "CRIU's word";
  EXPECT_EQ(result_of(Error{Code::internal, ""}, false), RequestResult::error);
  for (const Code code : {Code::data_loss, Code::resource_exhausted, Code::unavailable}) {
    EXPECT_EQ(result_of(Error{code, ""}, false), RequestResult::refused) << "nothing was begun";
    EXPECT_EQ(result_of(Error{code, ""}, true), RequestResult::error);
  }
  EXPECT_EQ(result_of(Error{Code::cancelled, ""}, true), RequestResult::cancelled);
}

TEST(MetricsTest, EachEventMovesItsColumn) {
  const auto metrics = Metrics::make().value();
  metrics->criu_called({criu::CallKind::dump, true, 5'000'000});
  metrics->criu_called({criu::CallKind::restore, false, 7'000'000});
  metrics->criu_called({criu::CallKind::pre_dump, true, 2'000'000});
  metrics->dump_ended(RequestResult::ok);
  metrics->restore_ended(RequestResult::error);
  metrics->restore_ended(RequestResult::refused);
  metrics->dump_ended(RequestResult::cancelled);
  metrics->image_bytes_written(100);
  metrics->image_bytes_written(23);
  metrics->set_processes_managed(3);
  metrics->spans_exported(4, 5);
  criu::DumpStats dump;
  dump.frozen_time_us = 11;
  dump.pages_written = 12;
  metrics->add(dump);
  criu::RestoreStats restore;
  restore.forking_time_us = 13;
  restore.pages_restored = 14;
  metrics->add(restore);
  auto now = values(metrics->registry());
  EXPECT_EQ(now["criu_calls[dump,ok]"], 1U);
  EXPECT_EQ(now["criu_calls[restore,error]"], 1U);
  EXPECT_EQ(now["criu_calls[dump,error]"], 0U);
  EXPECT_EQ(now["criu_call_time_us[pre-dump]"], 2000U);
  EXPECT_EQ(now["criu_call_time_us[dump]"], 5000U);
  EXPECT_EQ(now["criu_call_time_us[restore]"], 7000U);
  EXPECT_EQ(now["dumps[ok]"], 1U);
  EXPECT_EQ(now["restores[error]"], 1U);
  EXPECT_EQ(now["restores[refused]"], 1U);
  EXPECT_EQ(now["dumps[cancelled]"], 1U);
  EXPECT_EQ(now["dumps[error]"], 0U);
  EXPECT_EQ(now["image_written_bytes"], 123U);
  EXPECT_EQ(now["processes_managed"], 3U);
  EXPECT_EQ(now["otlp_spans_sent"], 4U);
  EXPECT_EQ(now["otlp_spans_dropped"], 5U);
  EXPECT_EQ(now["frozen_time_us"], 11U);
  EXPECT_EQ(now["pages_written"], 12U);
  EXPECT_EQ(now["forking_time_us"], 13U);
  EXPECT_EQ(now["pages_restored"], 14U);
}

TEST(MetricsTest, NotificationsMoveThePhaseAndTheLastRequestEndsIt) {
  const auto metrics = Metrics::make().value();
  const auto phase = [&] { return values(metrics->registry())["phase"]; };
  EXPECT_EQ(phase(), kPhaseIdle);
  metrics->request_began();
  EXPECT_EQ(phase(), kPhaseRequest);
  for (const std::string_view name : kNotifications) {
    metrics->notified(name);
    EXPECT_EQ(phase(), phase_of(name));
  }
  metrics->request_began();
  metrics->request_ended();
  EXPECT_NE(phase(), kPhaseIdle) << "one request still runs";
  metrics->request_ended();
  EXPECT_EQ(phase(), kPhaseIdle);
}

TEST(MetricsTest, ANotificationOfANewerCriuCountsAsOther) {
  const auto metrics = Metrics::make().value();
  metrics->notified("brand-new");
  EXPECT_EQ(values(metrics->registry())["criu_notifications[other]"], 1U);
}

// The row that the table of docs/metrics.md must have for a metric.
std::string documented_row(const Metric& metric) {
  std::string fields;
  for (const Field& field : metric.fields) fields += (fields.empty() ? "" : ",") + field.name;
  const std::array<const char*, 5> units{"count", "pages", "bytes", "nanoseconds", "microseconds"};
  return "| `" + metric.name + (fields.empty() ? "" : "[" + fields + "]") + "` | `" +
         prometheus_name(metric, kPrometheusPrefix) + "` | " +
         (metric.kind == Kind::gauge ? "gauge" : "counter") + " | " +
         units.at(static_cast<std::size_t>(metric.unit)) + " | " + metric.help + " |";
}

TEST(MetricsTest, TheTableInTheDocumentsIsTheRegistrys) {
  const auto metrics = Metrics::make().value();
  const auto recorder = Recorder::make(metrics->registry(), Config{}).value();
  std::set<std::string> expected;
  for (const Column& column : metrics->registry().columns()) {
    expected.insert(documented_row(*column.metric));
  }
  std::ifstream file(KYMO_SOURCE_DIR "/docs/metrics.md");
  ASSERT_TRUE(file) << "docs/metrics.md is missing";
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (line.find("` | `kymo_") != std::string::npos) documented.insert(line);
  }
  EXPECT_EQ(documented, expected);
}

}  // namespace
}  // namespace kymo::daemon
