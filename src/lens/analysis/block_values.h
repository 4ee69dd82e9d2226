#pragma once

#include <cstdint>
#include <vector>

#include "lens/analysis/summary.h"

namespace kymo::analysis {

// A part of a recording, on the clock of its rows. Both ends are included.
struct TimeWindow {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  [[nodiscard]] std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

// A column, cut into blocks of equal time. The value of a block is the growth per second of a
// counter, or the mean of a gauge over the time.
struct ColumnBlocks {
  std::vector<double> values;   // one for each block that has rows, without a partial last block
  std::vector<double> growths;  // of a counter: by how much it grew in each of these blocks
  double mean = 0;              // over the whole window
  double growth = 0;            // of a counter, in the whole window
  std::uint64_t rises = 0;      // rows that are higher than the row before
};

// Reads the blocks of all columns. Growth of a counter across a gap counts at the end of the gap.
// If a counter falls (the program restarted), that row counts as no growth.
//
// Errors: those of TsvReader.
// Cost:   one pass over the file, on all cores; a few words for each block and column.
Result<std::vector<ColumnBlocks>> read_blocks(const Summary& summary, const TimeWindow& window,
                                              std::uint64_t block_ns);

}  // namespace kymo::analysis
