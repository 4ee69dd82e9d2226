#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "lens/analysis/summary.h"

namespace kymo::report {

// The summaries as JSON with stable keys and exact values. The keys' names contain the units:
// {"format_version": 1, "recordings": [...]}.
nlohmann::ordered_json json_report(const std::vector<analysis::Summary>& summaries);

}  // namespace kymo::report
