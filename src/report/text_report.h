#pragma once

#include <string>

#include "analysis/summary.h"

namespace kymo::report {

struct TextOptions {
  bool exact = false;  // values as recorded instead of scaled ones
};

// The summary of a recording for a terminal or a file: what it is of, how far it can be trusted,
// its phases, and what each column did. Ends with a line end. Cost: a few strings a column.
std::string text_report(const analysis::Summary& summary, const TextOptions& options = {});

}  // namespace kymo::report
