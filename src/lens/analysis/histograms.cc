#include "lens/analysis/histograms.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

#include "lens/analysis/summary.h"

namespace kymo::analysis {
namespace {

// The parts of a name like `wait_us[65-128]`.
struct BucketName {
  std::string_view metric;
  std::uint64_t from = 0;
  std::optional<std::uint64_t> to;  // empty: infinite
};

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

std::optional<BucketName> bucket_name(std::string_view column) {
  const std::size_t open = column.find('[');
  if (open == std::string_view::npos || !column.ends_with(']')) return {};
  const std::string_view range = column.substr(open + 1, column.size() - open - 2);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  const auto from = whole_number(range.substr(0, dash));
  const auto to = whole_number(range.substr(dash + 1));
  if (!from || (!to && range.substr(dash + 1) != "inf")) return {};
  return BucketName{column.substr(0, open), *from, to};
}

Unit unit_of_name(std::string_view metric) {
  return metric.ends_with("_us")   ? Unit::microseconds
         : metric.ends_with("_ns") ? Unit::nanoseconds
                                   : Unit::count;
}

// The histogram whose first bucket is the column `first`. Nothing if there is none.
std::optional<HistogramColumns> histogram_at(const std::vector<ColumnInfo>& columns,
                                             std::size_t first) {
  HistogramColumns found;
  std::uint64_t from = 0;
  for (std::size_t i = first; i + 2 < columns.size(); ++i) {
    const auto bucket = bucket_name(columns[i].name);
    if (!bucket || bucket->from != from || columns[i].kind != Kind::counter) return {};
    if (i == first) found.metric = bucket->metric;
    if (bucket->metric != found.metric) return {};
    found.buckets.push_back(i);
    if (bucket->to) {
      found.bounds.push_back(*bucket->to);
      from = *bucket->to + 1;
      continue;
    }
    const ColumnInfo& sum = columns[i + 1];
    if (sum.name != found.metric + "_sum" || columns[i + 2].name != found.metric + "_count") {
      return {};
    }
    found.sum = i + 1;
    found.count = i + 2;
    found.help = columns[first].help;
    found.unit = sum.described ? sum.unit : unit_of_name(found.metric);
    return found;
  }
  return {};
}

std::vector<ColumnInfo> infos_of(const std::vector<ColumnSummary>& columns) {
  std::vector<ColumnInfo> infos;
  for (const ColumnSummary& column : columns) infos.push_back(column.info);
  return infos;
}

struct Place {
  BucketRange bucket;
  double share = 0;  // of the values in the bucket that are below the quantile
};

Place place_of_quantile(const std::vector<std::uint64_t>& bounds,
                        const std::vector<std::uint64_t>& counts, double share) {
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all == 0) return {};
  double left = share * static_cast<double>(all);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (counts[i] != 0 && left <= count) {
      const double low = i == 0 ? 0 : static_cast<double>(bounds[i - 1]) + 1;
      return {{low, static_cast<double>(bounds[i]), false, i == 0}, i == 0 ? 1 : left / count};
    }
    left -= count;
  }
  const double above = bounds.empty() ? 0 : static_cast<double>(bounds.back()) + 1;
  return {{above, above, true, false}, 0};
}

}  // namespace

std::vector<HistogramColumns> find_histograms(const std::vector<ColumnInfo>& columns) {
  std::vector<HistogramColumns> all;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (auto found = histogram_at(columns, i)) {
      i = found->count;
      all.push_back(std::move(*found));
    }
  }
  return all;
}

double quantile(const std::vector<std::uint64_t>& bounds, const std::vector<std::uint64_t>& counts,
                double share) {
  const Place place = place_of_quantile(bounds, counts, share);
  return place.bucket.low + (place.bucket.high - place.bucket.low) * place.share;
}

BucketRange bucket_of_quantile(const std::vector<std::uint64_t>& bounds,
                               const std::vector<std::uint64_t>& counts, double share) {
  return place_of_quantile(bounds, counts, share).bucket;
}

std::vector<HistogramSummary> summarize_histograms(const std::vector<ColumnSummary>& columns) {
  std::vector<HistogramSummary> all;
  for (const HistogramColumns& found : find_histograms(infos_of(columns))) {
    HistogramSummary summary{found.metric, found.unit};
    std::vector<std::uint64_t> counts;
    for (const std::size_t bucket : found.buckets) {
      counts.push_back(columns[bucket].delta);
      summary.values += counts.back();
      summary.values_before += columns[bucket].first;
      if (counts.back() == 0) continue;
      summary.above_max = counts.size() > found.bounds.size();
      summary.values_above_max = summary.above_max ? counts.back() : 0;
      summary.max =
          found.bounds.empty() ? 0 : found.bounds[std::min(counts.size(), found.bounds.size()) - 1];
    }
    if (summary.values != 0) {
      summary.mean =
          static_cast<double>(columns[found.sum].delta) / static_cast<double>(summary.values);
      summary.first_bound = found.bounds.empty() ? 0 : found.bounds.front();
      summary.p50 = quantile(found.bounds, counts, 0.5);
      summary.p90 = quantile(found.bounds, counts, 0.9);
      summary.p99 = quantile(found.bounds, counts, 0.99);
    }
    all.push_back(std::move(summary));
  }
  return all;
}

std::vector<bool> in_histograms(const std::vector<ColumnSummary>& columns) {
  std::vector<bool> in(columns.size());
  for (const HistogramColumns& found : find_histograms(infos_of(columns))) {
    for (const std::size_t bucket : found.buckets) in[bucket] = true;
    in[found.sum] = in[found.count] = true;
  }
  return in;
}

}  // namespace kymo::analysis
