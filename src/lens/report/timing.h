#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kymo/scope.h"

namespace kymo::report {

// The unit of durations. With `automatic`, each duration gets the unit that suits it.
enum class Precision : unsigned char { automatic, ns, us, ms, s };

// A tree of scopes as a table: the duration, category, bytes and name of each scope, the time that
// is in no scope, and the total. Values that do not count in the total are in brackets.
std::string timing_table(const std::vector<ScopeRecord>& scopes, Precision precision);
// The sums by category: duration, share, bytes, category.
std::string category_table(const std::vector<ScopeRecord>& scopes, Precision precision);

// A tree as nested objects, with the parts of a scope in `components`. Empty and false values are
// left out. Returns null if there are no scopes.
nlohmann::json timing_json(const std::vector<ScopeRecord>& scopes);

}  // namespace kymo::report
