#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "analysis/parallel_rows.h"
#include "analysis/row_parser.h"
#include "kymo/result.h"

namespace kymo::analysis {

// The whole rows of `text` whose times lie from `from_ns` to `to_ns`, and the one before them, from
// which rates count. Times must rise, as the format says; a line that is no row is passed over.
// Errors: of reading. Cost: some forty reads of 16 KiB, however long the text is.
Result<PlainText> rows_between(const PlainText& text, std::uint64_t from_ns, std::uint64_t to_ns);

// Some `count` rows from all over the text, in its order, the first among them; `take` gets one at
// a time. Fewer where the text has not so many, or where lines are no rows. Errors: of reading.
// Cost: two reads of a row or some of them each, however long the text is.
Result<void> sample_rows(const PlainText& text, std::size_t count,
                         const std::function<void(const RowBlock&)>& take);

// The time of the first row; none where there is none.
Result<std::optional<std::uint64_t>> first_time(const PlainText& text);

}  // namespace kymo::analysis
