#pragma once

#include <string>
#include <string_view>

#include "kymo/metric.h"

namespace kymo {

// A metric's name on /metrics (kymo/prometheus.h says how it is made).
inline std::string exposition_name(const Metric& metric, std::string_view prefix) {
  std::string_view stem = metric.name;
  std::string_view unit;
  // A histogram's columns are counts but for one: what it measures, its name's ending says.
  const bool histogram = !metric.bounds.empty();
  if (metric.unit == Unit::nanoseconds || metric.unit == Unit::microseconds ||
      (histogram && (stem.ends_with("_ns") || stem.ends_with("_us")))) {
    stem.remove_suffix(3);  // "_ns", "_us": the registry has seen to it
    unit = "_seconds";
  }
  constexpr std::string_view kTotal = "_total";
  const bool total = metric.kind == Kind::counter && !histogram;
  if (total && stem.ends_with(kTotal)) {
    stem.remove_suffix(kTotal.size());  // it comes behind the unit
  }
  std::string name(prefix);
  name += stem;
  name += unit;
  if (total) {
    name += kTotal;
  }
  return name;
}

}  // namespace kymo
