#pragma once

#include <cstdint>
#include <vector>

#include "kymo/metric.h"
#include "recorder/sampling/collect/recorder_counts.h"

namespace kymo {

// A metric of the recorder itself.
struct RecorderMetric {
  Metric metric;
  std::uint64_t (*read)(const RecorderCounts&);  // must be cheap: each sample calls it
};

std::vector<RecorderMetric> recorder_metrics();

}  // namespace kymo
