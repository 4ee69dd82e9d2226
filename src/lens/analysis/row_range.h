#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "kymo/result.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/row_parser.h"

namespace kymo::analysis {

// The range of the rows of `text` from `from_ns` to `to_ns`, and of the one row before them, which
// the first rates need. The times must not fall, as the format says. Lines that are not rows are
// ignored.
//
// Errors: those of reading.
// Cost:   about forty reads of 16 KiB, even of a very long text.
Result<PlainText> rows_between(const PlainText& text, std::uint64_t from_ns, std::uint64_t to_ns);

// Calls `take` with at most `count` rows, one at a time: the first row, and others that are spread
// evenly over the text, in its order. They are fewer if the text is short or damaged.
//
// Errors: those of reading.
// Cost:   two short reads for each row, even of a very long text.
Result<void> sample_rows(const PlainText& text, std::size_t count,
                         const std::function<void(const RowBlock&)>& take);

// The time of the first row. Nothing if there are no rows.
Result<std::optional<std::uint64_t>> first_time(const PlainText& text);

}  // namespace kymo::analysis
