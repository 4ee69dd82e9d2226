#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "kymo/scope.h"

namespace kymo {

// Scopes as nested objects (docs/timing.md), an array of the outermost ones. A parent comes before
// its parts.
nlohmann::json trees_json(const std::vector<ScopeRecord>& scopes);

}  // namespace kymo
