#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/summary.h"

namespace kymo::report {

// The summaries as JSON with stable keys, exact values and units in the keys' names:
// {"format_version": 1, "recordings": [...]}.
nlohmann::ordered_json json_report(const std::vector<analysis::Summary>& summaries);

}  // namespace kymo::report
