#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/parallel_rows.h"
#include "analysis/summary.h"
#include "kymo/result.h"

// What the formats have in common: a recording's parts, in the order in which they are written.
namespace kymo::exporting {

// The rows that `summary` counted, block by block and in order: `take` gets a block and how many of
// its rows. A recorder may have added others since; they are left to the next export. Errors: of
// reading; aborted where the recording does not have those rows any more.
Result<void> for_each_block(
    const analysis::Summary& summary,
    const std::function<void(const analysis::RowBlock&, std::size_t)>& take);

// Every gap of the list beside the recording; without one, the longest that the metadata has.
Result<void> for_each_gap(const analysis::Summary& summary,
                          const std::function<void(const Gap&)>& take);

// A scope of the request that the recording is of (docs/timing.md), on the recording's clock.
struct TimedScope {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::size_t parent = kNoParent;  // its index; smaller than the scope's own
  std::string name;                // a wrapper's parts are called "wrapper:part"
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

// Empty where the metadata has no tree or no clock to place it on.
std::vector<TimedScope> scopes_of(const analysis::Summary& summary);

// The name of the recording's file without its ending.
std::string name_of(const analysis::Summary& summary);

// The same names, those that were there before with a number behind: a, a_2. SQLite does not tell
// capital letters from small ones.
std::vector<std::string> unique_names(const std::vector<std::string>& names, bool any_case);

// The columns' names, all different.
std::vector<std::string> column_names(const analysis::Summary& summary, bool any_case);
// The same for a table of rows, whose first column is `time_ns`.
std::vector<std::string> table_columns(const analysis::Summary& summary, bool any_case);

// What the metadata says of the recording, as names and values, and where it came from.
std::vector<std::pair<std::string, std::string>> properties_of(const analysis::Summary& summary);

}  // namespace kymo::exporting
