#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// Holds a metric against the rules of kymo/metric.h. The message names the metric, the offending
// part and what is allowed.
Result<void> check_metric(const Metric& metric);

// The columns of a metric, in the order of their cells: the last field's value changes fastest.
std::vector<Column> columns_of(const Metric& metric);

}  // namespace kymo
