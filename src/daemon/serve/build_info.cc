#include "daemon/serve/build_info.h"

#include "base/clock.h"
#include "daemon/recording/metric_family.h"
#include "kymo/version.h"

namespace kymo::daemon {

BuildInfo::BuildInfo(const std::vector<runtime::CriuProgram>& crius)
    : criu_(crius.front().version.text()),
      criu_fallback_(crius.size() > 1 ? crius.back().version.text() : ""),
      started_unix_ns_(unix_ns()) {}

std::vector<prometheus::MetricFamily> BuildInfo::Collect() const {
  prometheus::MetricFamily family = metric_family(
      "build_info", "Always 1; the labels have the versions of kymod and of the CRIU that it uses",
      prometheus::MetricType::Gauge);
  prometheus::ClientMetric metric;
  metric.label = {{"version", KYMO_VERSION}, {"criu", criu_}, {"criu_fallback", criu_fallback_}};
  metric.gauge.value = 1;
  family.metric.push_back(std::move(metric));
  prometheus::MetricFamily start =
      metric_family("start_time_seconds", "When kymod started, in seconds since 1970",
                    prometheus::MetricType::Gauge);
  prometheus::ClientMetric at;
  at.gauge.value = static_cast<double>(started_unix_ns_) / 1e9;
  start.metric.push_back(std::move(at));
  return {std::move(family), std::move(start)};
}

}  // namespace kymo::daemon
