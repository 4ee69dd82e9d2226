#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/column_sum.h"
#include "analysis/row_parser.h"

namespace kymo::analysis {

// Some rows, and what each of their columns comes to; the time is the first.
struct RowPiece {
  const RowBlock& rows;
  const std::vector<ColumnSum>& sums;
};

// Where plain text lies in a file, and what its rows look like.
struct PlainText {
  int fd = -1;
  std::uint64_t begin = 0;  // of the first row
  std::uint64_t end = 0;
  std::size_t columns = 0;  // the time counts as one
};

// How far the rows were taken.
struct RowsTaken {
  std::uint64_t end = 0;  // offset behind the last of them
  std::uint64_t rows = 0;
  std::uint64_t last_time = 0;
};

// Parses plain text on `threads` threads, a chunk of it each; `take` is called for them in the
// order of the file, on the caller's thread. Stops before the first chunk that holds anything but
// rows, or cannot be read: what is wrong with it is for TsvReader to say, which goes on from there.
//
// Cost: 2 chunks of 256 KiB a thread, and the rows in them.
RowsTaken take_in_parallel(const PlainText& text, unsigned threads,
                           const std::function<void(const RowPiece&)>& take);

}  // namespace kymo::analysis
