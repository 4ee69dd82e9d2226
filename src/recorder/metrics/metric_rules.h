#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kymo/histogram.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// Checks a metric against the rules of kymo/metric.h, except those of check_own(). Every metric
// passes it, also one of a file that an earlier libkymo wrote. The error names the metric, the part
// that is wrong and what is allowed.
Result<void> check_metric(const Metric& metric);

// Checks that the name and the unit fit, that no field has the name of one of Prometheus's own labels, and
// that the help is UTF-8 without a zero byte. Only for a metric that this program registers: in a counter
// file the buckets of `wait_us` are a count, `wait_us_sum` is a time, and an earlier libkymo accepted `busy_ms`.
Result<void> check_own(const Metric& metric);

// The names that the metric has on /metrics, without a prefix: one, or four of a histogram.
std::vector<std::string> shown_names(const Metric& metric, bool histogram);

// Checks that the columns of a histogram of this name have names that a metric may have.
Result<void> check_histogram_name(const Metric& metric);
// Checks the buckets of a histogram against the rules of kymo/histogram.h.
Result<void> check_buckets(const Metric& metric, const HistogramBuckets& buckets);

// The columns of a histogram, in the order of their cells: buckets, sum, count. A column's metric
// has the unit of what the column counts.
std::vector<Column> histogram_columns(Metric metric, const HistogramBuckets& buckets);

// The number of columns of a metric; SIZE_MAX if it overflows. Call it before the columns are made.
// Cost: one multiplication for each field.
std::size_t column_count(const Metric& metric);

// The columns of a metric, in the order of their cells: the last field's value changes fastest.
std::vector<Column> columns_of(Metric metric);

}  // namespace kymo
