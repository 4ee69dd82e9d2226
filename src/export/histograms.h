#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/metadata.h"

namespace kymo::exporting {

// The indices of the columns that a recorder makes of one histogram (kymo/histogram.h).
struct HistogramColumns {
  std::string metric;
  std::string help;
  Unit unit = Unit::count;  // of the measured values
  std::vector<std::size_t> buckets;
  std::vector<std::uint64_t> bounds;  // the highest value of each bucket except the last
  std::size_t sum = 0;
  std::size_t count = 0;
};

// Finds histograms by the names of their columns, so it needs no metadata: `wait_us[0-64]` to
// `wait_us[1025-inf]`, then `wait_us_sum` and `wait_us_count`.
std::vector<HistogramColumns> find_histograms(const std::vector<analysis::ColumnInfo>& columns);

}  // namespace kymo::exporting
