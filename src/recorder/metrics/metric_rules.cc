#include "recorder/metrics/metric_rules.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "recorder/metrics/exposition_name.h"
#include "recorder/metrics/unit_names.h"

namespace kymo {
namespace {

constexpr std::size_t kMaxNameLength = 64;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameLength && is_lower(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

bool is_field_value(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameLength &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
         });
}

// The suffixes of names that say a unit.
constexpr std::array kSuffixes = {std::pair{"_bytes", Unit::bytes},
                                  std::pair{"_ns", Unit::nanoseconds},
                                  std::pair{"_us", Unit::microseconds}};
// The suffixes of units that no column has. Not `_min`, which often means the lowest value.
constexpr std::array kForeignTimes = {
    "_ms",      "_s",      "_sec",          "_secs", "_second", "_seconds",    "_minute",
    "_minutes", "_hour",   "_hours",        "_days", "_msec",   "_millis",     "_milliseconds",
    "_usec",    "_micros", "_microseconds", "_nsec", "_nanos",  "_nanoseconds"};
constexpr std::array kForeignSizes = {"_kb",  "_mb",     "_gb",     "_kib",   "_mib",
                                      "_gib", "_kbytes", "_mbytes", "_gbytes"};
// Labels that Prometheus itself gives to histograms and summaries.
constexpr std::array kPrometheusLabels = {"le", "quantile"};

Error refused(const Metric& metric, const std::string& why) {
  return Error{Code::invalid_argument, "metric '" + metric.name + "': " + why, 0};
}

Result<void> check_field(const Metric& metric, const Field& field) {
  if (!is_name(field.name)) {
    return refused(metric, "the field name '" + field.name + "' is not [a-z][a-z0-9_]*");
  }
  if (field.values.empty()) {
    return refused(metric, "the field '" + field.name + "' has no values");
  }
  std::vector<std::string> sorted = field.values;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return refused(metric, "the field '" + field.name + "' has the value '" + *twice + "' twice");
  }
  for (const std::string& value : field.values) {
    if (!is_field_value(value)) {
      return refused(metric, "the value '" + value + "' of field '" + field.name +
                                 "' is not [A-Za-z0-9_.-]+ of at most 64 characters");
    }
  }
  return {};
}

}  // namespace

Result<void> check_metric(const Metric& metric) {
  if (!is_name(metric.name)) {
    return refused(metric, "a name is [a-z][a-z0-9_]*, at most 64 characters");
  }
  if (static_cast<std::size_t>(metric.unit) >= kUnitNames.size()) {
    return refused(metric, "its unit is none of kymo::Unit");
  }
  if (metric.kind != Kind::counter && metric.kind != Kind::gauge) {
    return refused(metric, "its kind is none of kymo::Kind");
  }
  if (!metric.bounds.empty()) {
    return refused(metric,
                   "leave its bounds empty: the registry sets those of a histogram, which you "
                   "choose by the second argument of histogram(), kymo::HistogramBuckets");
  }
  for (std::size_t i = 0; i < metric.fields.size(); ++i) {
    if (Result<void> field = check_field(metric, metric.fields[i]); !field) {
      return field;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (metric.fields[j].name == metric.fields[i].name) {
        return refused(metric, "the field '" + metric.fields[i].name + "' is given twice");
      }
    }
  }
  return {};
}

Result<void> check_own(const Metric& metric) {
  // Prometheus gives up the whole scrape for one such text.
  if (metric.help.find('\0') != std::string::npos || valid_utf8(metric.help) != metric.help) {
    return refused(metric, "its help text is not valid UTF-8, or has a zero byte");
  }
  for (const Field& field : metric.fields) {
    if (std::find(kPrometheusLabels.begin(), kPrometheusLabels.end(), field.name) !=
        kPrometheusLabels.end()) {
      return refused(metric, "the field name '" + field.name +
                                 "' belongs to Prometheus's own histograms and summaries; choose "
                                 "another name");
    }
  }
  for (const auto& [suffix, unit] : kSuffixes) {
    if (metric.unit == unit && !metric.name.ends_with(suffix)) {
      return refused(metric,
                     std::string("because of its unit, its name must end in '") + suffix + "'");
    }
    // A time or a size that is called a count would be shown, exported and compared as a count.
    if (metric.unit != unit && metric.name.ends_with(suffix)) {
      return refused(metric, std::string("its name ends in '") + suffix + "', but its unit is " +
                                 unit_name(metric.unit) + ": set .unit = kymo::Unit::" +
                                 unit_name(unit) + ", or choose another name");
    }
  }
  for (const char* suffix : kForeignTimes) {
    if (metric.name.ends_with(suffix)) {
      return refused(metric, std::string("its name ends in '") + suffix +
                                 "', a unit that no column has: record microseconds ('_us') or "
                                 "nanoseconds ('_ns')");
    }
  }
  for (const char* suffix : kForeignSizes) {
    if (metric.name.ends_with(suffix)) {
      return refused(metric, std::string("its name ends in '") + suffix +
                                 "', a unit that no column has: record bytes ('_bytes')");
    }
  }
  return {};
}

std::vector<std::string> shown_names(const Metric& metric, bool histogram) {
  // What a name consists of. A histogram's columns have the unit `count`, and bounds.
  const Metric shown{.name = metric.name,
                     .kind = metric.kind,
                     .unit = histogram ? Unit::count : metric.unit,
                     .bounds = std::vector<std::uint64_t>(histogram ? 1 : 0)};
  std::vector<std::string> names{exposition_name(shown, "")};
  if (histogram) {
    for (const char* ending : {"_bucket", "_sum", "_count"}) {
      names.push_back(names.front() + ending);
    }
  }
  return names;
}

Result<void> check_histogram_name(const Metric& metric) {
  // Its longest column beside those of the buckets, whose names have no limit.
  constexpr std::size_t kLongest = kMaxNameLength - std::string_view("_count").size();
  if (metric.name.size() <= kLongest) return {};
  return refused(metric, "the name of a histogram has at most " + std::to_string(kLongest) +
                             " characters, because the name of its column NAME_count has at most " +
                             std::to_string(kMaxNameLength) + "; this one has " +
                             std::to_string(metric.name.size()));
}

Result<void> check_buckets(const Metric& metric, const HistogramBuckets& buckets) {
  if (metric.kind != Kind::counter || !metric.fields.empty()) {
    return refused(metric, "a histogram is a counter without fields");
  }
  for (const auto& [option, value] : {std::pair<const char*, std::uint64_t>{"first", buckets.first},
                                      {"last", buckets.last},
                                      {"per_doubling", buckets.per_doubling}}) {
    if (!std::has_single_bit(value)) {
      return refused(metric, std::string("its buckets' ") + option + " = " + std::to_string(value) +
                                 ": allowed are powers of two");
    }
  }
  if (buckets.per_doubling > 16 || buckets.first < buckets.per_doubling ||
      buckets.last <= buckets.first) {
    return refused(
        metric,
        "its buckets need a per_doubling of 1 to 16, a first of at least per_doubling, "
        "and a last above first (are the lowest and the highest value swapped?); they have " +
            std::to_string(buckets.per_doubling) + ", " + std::to_string(buckets.first) + ", " +
            std::to_string(buckets.last));
  }
  return {};
}

std::vector<Column> histogram_columns(Metric metric, const HistogramBuckets& buckets) {
  const detail::BucketIndex index(buckets);
  for (std::uint32_t i = 0; i < index.last(); ++i) {
    metric.bounds.push_back(index.bound(i));
  }
  Metric counts = metric;
  counts.unit = Unit::count;
  Metric bucket = counts;
  bucket.fields = {{"bucket", {}}};
  std::uint64_t from = 0;
  for (const std::uint64_t bound : metric.bounds) {
    bucket.fields[0].values.push_back(std::to_string(from) + '-' + std::to_string(bound));
    from = bound + 1;
  }
  bucket.fields[0].values.push_back(std::to_string(from) + "-inf");
  std::vector<Column> columns = columns_of(std::move(bucket));
  const std::string name = metric.name;
  columns.push_back({name + "_sum", std::make_shared<const Metric>(std::move(metric)), {}});
  columns.push_back({name + "_count", std::make_shared<const Metric>(std::move(counts)), {}});
  return columns;
}

std::size_t column_count(const Metric& metric) {
  std::size_t count = 1;
  for (const Field& field : metric.fields) {
    if (__builtin_mul_overflow(count, field.values.size(), &count)) {
      return SIZE_MAX;
    }
  }
  return count;
}

std::vector<Column> columns_of(Metric metric) {
  const auto shared = std::make_shared<const Metric>(std::move(metric));
  std::vector<Column> columns{{shared->name, shared, {}}};
  for (const Field& field : shared->fields) {
    std::vector<Column> wider;
    wider.reserve(columns.size() * field.values.size());
    for (const Column& column : columns) {
      for (const std::string& value : field.values) {
        wider.push_back(column);
        wider.back().field_values.push_back(value);
      }
    }
    columns = std::move(wider);
  }
  for (Column& column : columns) {
    for (std::size_t i = 0; i < column.field_values.size(); ++i) {
      column.name += (i == 0 ? "[" : ",") + column.field_values[i];
    }
    column.name += column.field_values.empty() ? "" : "]";
  }
  return columns;
}

}  // namespace kymo
