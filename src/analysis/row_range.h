#pragma once

#include <cstdint>
#include <optional>

#include "analysis/parallel_rows.h"
#include "kymo/result.h"

namespace kymo::analysis {

// The whole rows of `text` whose times lie from `from_ns` to `to_ns`, and the one before them, from
// which rates count. Times must rise, as the format says; a line that is no row is passed over.
// Errors: of reading. Cost: some forty reads of 64 KiB, however long the text is.
Result<PlainText> rows_between(const PlainText& text, std::uint64_t from_ns, std::uint64_t to_ns);

// The time of the first row; none where there is none.
Result<std::optional<std::uint64_t>> first_time(const PlainText& text);

}  // namespace kymo::analysis
