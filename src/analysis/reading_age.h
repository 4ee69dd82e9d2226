#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/metadata.h"

namespace kymo::analysis {

// `kymo record` reads the figures of a process tree and of its cgroup on a thread of its own. A row has
// the newest ones and says how old they are (docs/record.md). So their rates are those between the
// times at which they were read.
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

}  // namespace kymo::analysis
