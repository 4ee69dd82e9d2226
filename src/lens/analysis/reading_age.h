#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lens/analysis/metadata.h"

namespace kymo::analysis {

// `kymo record` reads the figures of a process tree and of its cgroup on a thread of its own. A row has
// the newest ones and says how old they are (docs/record.md). So their rates are those between the
// times at which they were read, in reports and in pages (src/lens/pages/recording.js).
inline constexpr std::string_view kReadingAge = "profiler_tree_age_ns";

// The column that says how old the figures are. Nothing if the recording has none.
inline std::optional<std::size_t> column_of_age(const std::vector<ColumnInfo>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == kReadingAge) return i;
  }
  return std::nullopt;
}

// Whether the values of this column, beside that one, were read before their row.
inline bool is_read_before(std::string_view column) {
  return column.starts_with("tree_") || column.starts_with("cgroup_");
}

// The clock of these values: each row's time without its age, in the order of time.
class ReadingClock {
 public:
  std::span<const std::uint64_t> times(std::span<const std::uint64_t> rows,
                                       std::span<const std::uint64_t> ages) {
    times_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      last_ns_ = std::max(last_ns_, rows[i] - std::min(rows[i], ages[i]));
      times_.push_back(last_ns_);
    }
    return times_;
  }

 private:
  std::uint64_t last_ns_ = 0;
  std::vector<std::uint64_t> times_;
};

}  // namespace kymo::analysis
