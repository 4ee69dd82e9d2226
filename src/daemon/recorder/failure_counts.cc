#include "daemon/recorder/failure_counts.h"

#include "daemon/recorder/metric_family.h"

namespace kymo::daemon {

void FailureCounts::add(std::string_view request, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  ++counts_[{std::string(request), std::string(reason)}];
}

std::vector<prometheus::MetricFamily> FailureCounts::Collect() const {
  prometheus::MetricFamily family = metric_family(
      "failures_total", "Dumps and restores that failed, by the reason's id in docs/errors.md",
      prometheus::MetricType::Counter);
  const std::lock_guard lock(mutex_);
  for (const auto& [what, count] : counts_) {
    prometheus::ClientMetric metric;
    metric.label = {{"request", what.first}, {"reason", what.second}};
    metric.counter.value = static_cast<double>(count);
    family.metric.push_back(std::move(metric));
  }
  if (family.metric.empty()) return {};
  return {std::move(family)};
}

}  // namespace kymo::daemon
