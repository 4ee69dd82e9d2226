#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/tsv_reader.h"

namespace kymo::fuzz {

// What a recording held.
struct RowsRead {
  std::uint64_t rows = 0;
  std::uint64_t left_out = 0;  // lines
  std::uint64_t sum = 0;       // of all values, each by its place
};

// Reads a recording to its end: rows have the header's shape and never go back in time, and the
// list of what is left out is bounded.
RowsRead read_rows(analysis::TsvReader& reader);

}  // namespace kymo::fuzz
