#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/tsv_reader.h"

namespace kymo::fuzz {

// What was read from a recording.
struct RowsRead {
  std::uint64_t rows = 0;
  std::uint64_t left_out = 0;  // lines
  std::uint64_t sum = 0;       // over all values, each weighted by its position
};

// Reads a recording to its end. Checks that each row has the columns of the header, that time never
// goes back, and that the list of left-out lines is bounded.
RowsRead read_rows(analysis::TsvReader& reader);

}  // namespace kymo::fuzz
