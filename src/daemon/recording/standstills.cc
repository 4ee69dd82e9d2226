#include "daemon/recording/standstills.h"

#include <algorithm>
#include <limits>

#include "daemon/recording/metric_family.h"

namespace kymo::daemon {

void Standstills::add(std::uint64_t stood_still_ns) {
  const double seconds = static_cast<double>(stood_still_ns) / 1e9;
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(bucket - kBounds.begin())];
  seconds_ += seconds;
}

std::vector<prometheus::MetricFamily> Standstills::Collect() const {
  prometheus::MetricFamily family =
      metric_family("stood_still_seconds",
                    "How long the processes of a dump stood still, also of one that failed",
                    prometheus::MetricType::Histogram);
  prometheus::ClientMetric metric;
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    sum += counts_[i];
    const bool last = i == kBounds.size();
    metric.histogram.bucket.push_back(
        {sum, last ? std::numeric_limits<double>::infinity() : kBounds[i]});
  }
  metric.histogram.sample_count = sum;
  metric.histogram.sample_sum = seconds_;
  family.metric.push_back(std::move(metric));
  return {std::move(family)};
}

}  // namespace kymo::daemon
