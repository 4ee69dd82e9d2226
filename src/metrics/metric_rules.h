#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kymo/histogram.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// Holds a metric against the rules of kymo/metric.h. The message names the metric, the offending
// part and what is allowed.
Result<void> check_metric(const Metric& metric);

// Holds the buckets of a histogram against the rules of kymo/histogram.h.
Result<void> check_buckets(const Metric& metric, const HistogramBuckets& buckets);

// The columns of a histogram, in the order of their cells: buckets, sum, count. A column's metric
// has the unit of what the column counts.
std::vector<Column> histogram_columns(Metric metric, const HistogramBuckets& buckets);

// How many columns a metric has; SIZE_MAX where they cannot be counted. Cost: a multiplication a
// field, so to be asked before they are made.
std::size_t column_count(const Metric& metric);

// The columns of a metric, in the order of their cells: the last field's value changes fastest.
std::vector<Column> columns_of(Metric metric);

}  // namespace kymo
