#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/summary.h"

namespace kymo::report {

// The time from one mark of a recording to the next.
struct Phase {
  std::string name;  // the name of the mark at which it begins
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  // the last phase ends with the last row
};

// The phases of a recording, also those whose marks are before or after its rows.
std::vector<Phase> phases_of(const analysis::Summary& summary);

}  // namespace kymo::report
