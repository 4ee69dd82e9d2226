#pragma once

#include <prometheus/metric_family.h>

#include <string>

#include "daemon/recording/metrics.h"

namespace kymo::daemon {

// Returns the description of a metric that is no column of recordings, still without a value.
// `name` is its name without kymod's prefix.
inline prometheus::MetricFamily metric_family(const char* name, const char* help,
                                              prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = std::string(kPrometheusPrefix) + name;
  family.help = help;
  family.type = type;
  return family;
}

}  // namespace kymo::daemon
