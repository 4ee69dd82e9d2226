#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/export.h"

namespace kymo {

// How a column of a recording is to be read.
enum class Kind : std::uint8_t {
  counter,  // cumulative: only ever grows; its differences are rates
  gauge,    // the state at the moment of the sample
};

// What one step of a value means. Times and sizes carry their unit in the metric's name as well
// (`_us`, `_ns`, `_bytes`), which the registry checks.
enum class Unit : std::uint8_t { count, pages, bytes, nanoseconds, microseconds };

// One dimension of a metric: a closed set of values. Each combination is a column of its own.
struct Field {
  std::string name;
  std::vector<std::string> values;
};

// What a metric is. Names and field names are [a-z][a-z0-9_]*, at most 64 characters; field values
// are [A-Za-z0-9_.-]+. The Prometheus name follows from this one (docs/metrics.md).
// The braces let callers leave members out by name without a warning.
struct Metric {
  std::string name;
  std::string help{};
  Kind kind = Kind::counter;
  Unit unit = Unit::count;
  std::vector<Field> fields{};
  // Of a histogram, the highest value of each bucket but the last, which has none; else empty.
  std::vector<std::uint64_t> bounds{};
};

// One column of a recording: a metric and one value for each of its fields.
struct Column {
  std::string name;                      // `metric` or `metric[v1,v2]`
  std::shared_ptr<const Metric> metric;  // never null; one for all columns of a metric
  std::vector<std::string> field_values;
};

}  // namespace kymo
