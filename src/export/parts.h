#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/parallel_rows.h"
#include "analysis/summary.h"
#include "kymo/result.h"

// What the formats share: the parts of a recording, in the order in which they are written.
namespace kymo::exporting {

// Calls `take` for the rows that `summary` counted, block by block and in order, with a block and
// the number of its rows to use. Rows that a recorder has added since then are left out.
//
// Errors: those of reading.
//         aborted if the recording does not have these rows any more.
Result<void> for_each_block(
    const analysis::Summary& summary,
    const std::function<void(const analysis::RowBlock&, std::size_t)>& take);

// Calls `take` for every gap in NAME.gaps.tsv, of all parts if the recording has several. If there is no
// such file, for the longest gaps in the metadata.
Result<void> for_each_gap(const analysis::Summary& summary,
                          const std::function<void(const Gap&)>& take);

// A scope of the recorded request (docs/timing.md), on the clock of the recording.
struct TimedScope {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::size_t parent = kNoParent;  // the parent's index, which is smaller than the scope's own
  std::string name;                // "wrapper:part" for a part of a wrapper
  std::string category;
  std::string error;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  bool parallel = false;
  bool redundant = false;
  bool unfinished = false;

  [[nodiscard]] std::int64_t end_ns() const { return start_ns + duration_ns; }
};

// The scopes of the request. Empty if the metadata has no timing tree, or no start time to place it
// on the clock of the recording.
std::vector<TimedScope> scopes_of(const analysis::Summary& summary);

// The name of the recording's file without its ending.
std::string name_of(const analysis::Summary& summary);

// The same names, made unique: a repeated name gets a number (a, a_2). With `any_case`, upper and
// lower case count as the same, as in SQLite.
std::vector<std::string> unique_names(const std::vector<std::string>& names, bool any_case);

// The names of the columns, made unique.
std::vector<std::string> column_names(const analysis::Summary& summary, bool any_case);
// The same with `time_ns` as the first column, for a table of rows.
std::vector<std::string> table_columns(const analysis::Summary& summary, bool any_case);

// The metadata and the origin of the recording as names and values.
std::vector<std::pair<std::string, std::string>> properties_of(const analysis::Summary& summary);

}  // namespace kymo::exporting
