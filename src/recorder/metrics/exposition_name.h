#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kymo/metric.h"

namespace kymo {

inline constexpr const char* kExpositionPrefixRule =
    "must be empty, or consist of letters (a-z, A-Z), digits and '_', with no digit first and at "
    "most 64";

// Whether the names of metrics on /metrics may begin with `prefix`.
inline bool is_exposition_prefix(std::string_view prefix) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  };
  constexpr std::size_t kMaxLength = 64;
  return prefix.empty() || (prefix.size() <= kMaxLength && !is_digit(prefix.front()) &&
                            std::all_of(prefix.begin(), prefix.end(), is_allowed));
}

// The power of ten by which a value of this unit is divided, so that times become seconds.
inline std::size_t places_of(Unit unit) {
  return unit == Unit::nanoseconds ? 9 : unit == Unit::microseconds ? 6 : 0;
}

// A value as it is on /metrics: the double that is nearest to the exact number. A factor such as
// 1e-6 would give another one, and the bound of a bucket another label than the export writes.
inline double in_base_unit(std::uint64_t value, Unit unit) {
  const double divisor = unit == Unit::nanoseconds ? 1e9 : unit == Unit::microseconds ? 1e6 : 1;
  return static_cast<double>(value) / divisor;
}

// A metric's name on /metrics (kymo/prometheus.h says how it is made). `metric` may break the rules
// of a registry: it can come from a file.
inline std::string exposition_name(const Metric& metric, std::string_view prefix) {
  std::string_view stem = metric.name;
  std::string_view unit;
  const bool has_time_ending = stem.ends_with("_ns") || stem.ends_with("_us");
  // Most columns of a histogram have the unit `count`. The ending of its name tells what it
  // measures.
  const bool histogram = !metric.bounds.empty();
  if (places_of(metric.unit) != 0 || (histogram && has_time_ending)) {
    if (has_time_ending) stem.remove_suffix(3);
    unit = "_seconds";
  }
  constexpr std::string_view kTotal = "_total";
  const bool total = metric.kind == Kind::counter && !histogram;
  if (total && stem.ends_with(kTotal)) {
    stem.remove_suffix(kTotal.size());  // it is appended after the unit
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
