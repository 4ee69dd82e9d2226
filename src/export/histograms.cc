#include "export/histograms.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace kymo::exporting {
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
std::optional<HistogramColumns> histogram_at(const std::vector<analysis::ColumnInfo>& columns,
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
    const analysis::ColumnInfo& sum = columns[i + 1];
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

}  // namespace

std::vector<HistogramColumns> find_histograms(const std::vector<analysis::ColumnInfo>& columns) {
  std::vector<HistogramColumns> all;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (auto found = histogram_at(columns, i)) {
      i = found->count;
      all.push_back(std::move(*found));
    }
  }
  return all;
}

}  // namespace kymo::exporting
