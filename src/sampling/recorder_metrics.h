#pragma once

#include <cstdint>
#include <vector>

#include "kymo/metric.h"
#include "sampling/recorder_counts.h"

namespace kymo {

// A metric that a recorder has of itself.
struct RecorderMetric {
  Metric metric;
  std::uint64_t (*read)(const RecorderCounts&);  // a load or two: it runs within each sample
};

std::vector<RecorderMetric> recorder_metrics();

}  // namespace kymo
