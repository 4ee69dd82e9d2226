#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lens/analysis/column_sum.h"
#include "lens/analysis/row_parser.h"

namespace kymo::analysis {

// A block of rows and the totals of its columns. The time is the first column.
struct RowPiece {
  const RowBlock& rows;
  const std::vector<ColumnSum>& sums;
};

// The range of a file that holds the rows of plain TSV.
struct PlainText {
  int fd = -1;
  std::uint64_t begin = 0;  // offset of the first row
  std::uint64_t end = 0;
  std::size_t columns = 0;  // including the time
};

// The rows that take_in_parallel() has parsed.
struct RowsTaken {
  std::uint64_t end = 0;  // offset after the last row
  std::uint64_t rows = 0;
  std::uint64_t last_time = 0;
};

// Parses plain text on `threads` threads, chunk by chunk. `take` is called for the chunks in the
// order of the file, on the caller's thread. Stops before the first chunk that cannot be read or
// holds anything but rows. TsvReader continues there and reports what is wrong.
//
// Cost: for each thread, 2 chunks of 256 KiB and the rows in them.
RowsTaken take_in_parallel(const PlainText& text, unsigned threads,
                           const std::function<void(const RowPiece&)>& take);

}  // namespace kymo::analysis
