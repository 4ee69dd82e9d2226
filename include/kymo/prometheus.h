#pragma once

#include <memory>
#include <string>

#include "kymo/export.h"
#include "kymo/metric.h"
#include "kymo/registry.h"

// prometheus-cpp's, declared rather than included: this header needs no third-party header.
namespace prometheus {
class Collectable;
}

namespace kymo {

// The Prometheus name of a metric: `kymo_` before it, its unit in base units (`_us` and `_ns`
// become `_seconds`), `_total` after a counter. `frozen_time_us` is
// `kymo_frozen_time_seconds_total`.
KYMO_API std::string prometheus_name(const Metric& metric);

// Shows a registry's metrics to prometheus-cpp: give it to an Exposer, or to whatever serializes.
// Fields become labels; microseconds and nanoseconds are scaled to seconds.
//
// Threads: Collect() from any. Ownership: refers to `registry`, which must outlive it.
KYMO_API std::shared_ptr<::prometheus::Collectable> make_prometheus_collectable(
    const Registry& registry);

}  // namespace kymo
