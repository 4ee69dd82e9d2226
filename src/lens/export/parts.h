#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/summary.h"
#include "lens/report/scopes.h"

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

// The scopes of a recording, or none.
std::vector<report::RecordedScope> scopes_of(const analysis::Summary& summary);

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
