#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kymo/export.h"
#include "kymo/metric.h"
#include "kymo/registry.h"

// Declared here and not included, so that this header needs no header of prometheus-cpp.
namespace prometheus {
class Collectable;
}

namespace kymo {

// The Prometheus name of a metric: `prefix`, the name with its unit as a base unit (`_us` and `_ns`
// become `_seconds`), and `_total` for a counter whose name does not end in it already. With the
// prefix `myapp_`, `wait_time_us` becomes `myapp_wait_time_seconds_total`.
KYMO_API std::string prometheus_name(const Metric& metric, std::string_view prefix = {});

// Shows the metrics of a registry to prometheus-cpp. Give the result to an Exposer or to a
// serializer. Fields become labels. Microseconds and nanoseconds are converted to seconds.
// Names begin with `prefix`, which is empty, or at most 64 letters, digits and '_', with no digit
// first. Use the same prefix for ProfilerOptions::prometheus_prefix, so that exports of a recording
// have the same names.
//
// Threads:   Collect() from any. It runs the callbacks of the registry on its caller's thread, one
//            at a time (kymo/registry.h): a slow callback can delay a scrape and the collector of a
//            profiler by its own duration.
// Ownership: has a copy of `registry`. An Exposer keeps only a weak pointer, so keep the result as
//            long as the metrics shall be shown.
// Errors:    throws std::invalid_argument for any other prefix, as prometheus-cpp does for a name;
//            and if another collectable that exists shows a metric of the same name, because
//            Prometheus refuses a scrape with both. A metric that is registered afterwards with such
//            a name is not shown.
KYMO_API std::shared_ptr<::prometheus::Collectable> make_prometheus_collectable(
    const Registry& registry, std::string prefix = {});

}  // namespace kymo
