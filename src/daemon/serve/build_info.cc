#include "daemon/serve/build_info.h"

#include "daemon/recorder/metric_family.h"
#include "kymo/version.h"

namespace kymo::daemon {

BuildInfo::BuildInfo(const std::vector<runtime::CriuProgram>& crius)
    : criu_(crius.front().version.text()),
      criu_fallback_(crius.size() > 1 ? crius.back().version.text() : "") {}

std::vector<prometheus::MetricFamily> BuildInfo::Collect() const {
  prometheus::MetricFamily family = metric_family(
      "build_info", "Always 1; the labels have the versions of kymod and of the CRIU that it uses",
      prometheus::MetricType::Gauge);
  prometheus::ClientMetric metric;
  metric.label = {{"version", KYMO_VERSION}, {"criu", criu_}, {"criu_fallback", criu_fallback_}};
  metric.gauge.value = 1;
  family.metric.push_back(std::move(metric));
  return {std::move(family)};
}

}  // namespace kymo::daemon
