#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/metadata.h"

namespace kymo::analysis {

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
std::vector<HistogramColumns> find_histograms(const std::vector<ColumnInfo>& columns);

// The values that were recorded between the first and the last row.
struct HistogramSummary {
  std::string metric;
  Unit unit = Unit::count;
  std::uint64_t values = 0;  // 0: the members below are 0, too
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  std::uint64_t first_bound =
      0;  // a quantile that is not above it lies in the first bucket: anywhere below
  std::uint64_t max = 0;   // bound of the highest bucket that has values: no value was higher
  bool above_max = false;  // the highest values are in the bucket without a bound, all above `max`
  std::uint64_t values_above_max = 0;  // values in the bucket without a bound
  std::uint64_t values_before = 0;     // recorded before the first row, so in no figure
};

// The quantile of values that are counted in buckets. Within a bucket they count as evenly spread. Of
// the first one, which holds all that is below the buckets, it is the highest value: it is not above that.
// Of the last one, which has no upper bound, it is the lowest value. `bounds`: the highest value of each
// bucket except the last. `counts`: one more. 0 if nothing was counted.
double quantile(const std::vector<std::uint64_t>& bounds, const std::vector<std::uint64_t>& counts,
                double share);

// The bucket in which that quantile lies, both ends included. The last bucket has no upper end: its
// `high` is its `low`.
struct BucketRange {
  double low = 0;
  double high = 0;
  bool is_last = false;   // the values are higher than all bounds, by nobody knows how much
  bool is_first = false;  // the values are below the buckets: anything from 0 to `high`
  friend bool operator==(const BucketRange&, const BucketRange&) = default;
};
BucketRange bucket_of_quantile(const std::vector<std::uint64_t>& bounds,
                               const std::vector<std::uint64_t>& counts, double share);

struct ColumnSummary;
// The histograms among the columns of a recording.
std::vector<HistogramSummary> summarize_histograms(const std::vector<ColumnSummary>& columns);
// Whether each column belongs to a histogram.
std::vector<bool> in_histograms(const std::vector<ColumnSummary>& columns);

}  // namespace kymo::analysis
