#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/diagnosis/phases.h"
#include "lens/analysis/summary.h"

namespace kymo::report {

// The phases of a recording on the clock of its rows, also those before or after them: the phases of its request, if its
// metadata has them. Otherwise the times from each mark to the next; the last mark's ends with the last row.
std::vector<diagnosis::Phase> phases_of(const analysis::Summary& summary);

}  // namespace kymo::report
