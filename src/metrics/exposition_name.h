#pragma once

#include <algorithm>
#include <cstddef>
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

// A metric's name on /metrics (kymo/prometheus.h says how it is made).
inline std::string exposition_name(const Metric& metric, std::string_view prefix) {
  std::string_view stem = metric.name;
  std::string_view unit;
  // Most columns of a histogram have the unit `count`. The ending of its name tells what it
  // measures.
  const bool histogram = !metric.bounds.empty();
  if (metric.unit == Unit::nanoseconds || metric.unit == Unit::microseconds ||
      (histogram && (stem.ends_with("_ns") || stem.ends_with("_us")))) {
    stem.remove_suffix(3);  // "_ns" or "_us": the registry has checked this
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
