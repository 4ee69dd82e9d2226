#pragma once

#include <cstdint>
#include <vector>

#include "analysis/summary.h"

namespace kymo::analysis {

// A part of a recording, in times of its rows; both ends belong to it.
struct TimeWindow {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  [[nodiscard]] std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

// A column in equal pieces of time: of a counter how much it grew per second, of a gauge the mean
// of its rows.
struct ColumnBlocks {
  std::vector<double> values;  // of each block that has rows; a last one that is no whole one has
                               // none
  double mean = 0;             // over the whole window
  double growth = 0;           // of a counter, in the whole window
  std::uint64_t rises = 0;     // rows in which it grew
};

// Reads these blocks of all columns. What a counter grew across a gap counts where the gap ends;
// where it falls, which is a restart, it did not grow. Errors: those of TsvReader. Cost: a pass
// over the file, on all cores; some words a block and column.
Result<std::vector<ColumnBlocks>> read_blocks(const Summary& summary, const TimeWindow& window,
                                              std::uint64_t block_ns);

}  // namespace kymo::analysis
