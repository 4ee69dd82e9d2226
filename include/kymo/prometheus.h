#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kymo/export.h"
#include "kymo/metric.h"
#include "kymo/registry.h"

// prometheus-cpp's, declared rather than included: this header needs no third-party header.
namespace prometheus {
class Collectable;
}

namespace kymo {

// The Prometheus name of a metric: `prefix` before it, its unit in base units (`_us` and `_ns`
// become `_seconds`), `_total` after a counter that does not end so already. With the prefix
// `myapp_`, `wait_time_us` is `myapp_wait_time_seconds_total`.
KYMO_API std::string prometheus_name(const Metric& metric, std::string_view prefix = {});

// Shows a registry's metrics to prometheus-cpp: give it to an Exposer, or to whatever serializes.
// Fields become labels; microseconds and nanoseconds are scaled to seconds. Names begin with
// `prefix`, which may be empty, or letters, digits and '_' and no digit first. Give the same one as
// ProfilerOptions::prometheus_prefix, so that exports of a recording have the same names.
//
// Threads:   Collect() from any.
// Ownership: refers to `registry`, which must outlive it. An Exposer keeps a weak pointer alone:
//            keep what is returned as long as it shall be shown.
// Errors:    std::invalid_argument, as prometheus-cpp throws it for a name, for another prefix.
KYMO_API std::shared_ptr<::prometheus::Collectable> make_prometheus_collectable(
    const Registry& registry, std::string prefix = {});

}  // namespace kymo
