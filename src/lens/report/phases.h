#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/summary.h"

namespace kymo::report {

// A phase of the recorded request, on the clock of the rows.
struct Phase {
  std::string name;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t uncertainty_ns = 0;
  std::string evidence;
  bool frozen = false;
};

// The phases of a recording, also those before or after its rows: the phases of its request, if its
// metadata has them. Otherwise the times from each mark to the next; the last mark's ends with the
// last row.
std::vector<Phase> phases_of(const analysis::Summary& summary);

}  // namespace kymo::report
