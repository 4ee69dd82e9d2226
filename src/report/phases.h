#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/summary.h"

namespace kymo::report {

// The time from one mark of a recording to the next.
struct Phase {
  std::string name;  // of the mark that begins it
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  // the last one ends with the rows
};

// Marks that lie outside the rows are kept: they, too, happened.
std::vector<Phase> phases_of(const analysis::Summary& summary);

}  // namespace kymo::report
