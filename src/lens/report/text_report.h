#pragma once

#include <string>

#include "lens/analysis/summary.h"

namespace kymo::report {

struct TextOptions {
  bool exact = false;  // show values as recorded, not scaled
};

// The summary of a recording for a terminal or a file: what was recorded, the quality, the phases,
// and each column. It ends with a line end.
//
// Cost: a few strings for each column.
std::string text_report(const analysis::Summary& summary, const TextOptions& options = {});

}  // namespace kymo::report
