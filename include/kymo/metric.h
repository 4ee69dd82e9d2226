#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/export.h"

namespace kymo {

// How to read the values of a column.
enum class Kind : std::uint8_t {
  counter,  // cumulative, only grows; the difference of two rows gives the rate
  gauge,    // the state at the moment of the sample
};

// The unit of a value. The name of a metric that is a time or a size must end in its unit (`_us`,
// `_ns`, `_bytes`), and no other may. The registry checks this, and refuses the ending of a unit
// that is not here (`_ms`, `_seconds`, `_s`, `_kb`; not `_min`, which may be a minimum).
enum class Unit : std::uint8_t { count, pages, bytes, nanoseconds, microseconds };

// One dimension of a metric, with a fixed list of values. Each combination of field values is a
// column of its own.
struct Field {
  std::string name;
  std::vector<std::string> values;
};

// The description of a metric. Metric names and field names are [a-z][a-z0-9_]*, field values are
// [A-Za-z0-9_.-]+, and all have at most 64 characters. The Prometheus name is made from `name`
// (docs/metrics.md).
// The braces let callers use designated initializers without a warning about missing members.
struct Metric {
  std::string name;
  std::string help{};
  Kind kind = Kind::counter;
  Unit unit = Unit::count;
  std::vector<Field> fields{};
  // Of a column of a histogram: the highest value of each bucket except the last, which has none.
  // Only the registry sets it. Registering refuses a metric whose bounds are not empty.
  std::vector<std::uint64_t> bounds{};
};

// What the callback of a metric has thrown, or that it has returned values that are probably
// negative numbers.
struct CallbackError {
  std::string metric;
  std::uint64_t count = 0;  // how many calls threw, or returned such a value
  std::string what;         // what() of the last exception, or the last such value, in one line
  // Nothing was thrown: the values were 2^63 or more. They are recorded as they are.
  bool negative = false;
  bool no_value = false;  // it has never returned a value: its columns are 0, which means nothing
};

// One column of a recording: a metric and one value for each of its fields.
struct Column {
  std::string name;                      // `metric` or `metric[v1,v2]`
  std::shared_ptr<const Metric> metric;  // never null; one for all columns of a metric
  std::vector<std::string> field_values;
};

}  // namespace kymo
