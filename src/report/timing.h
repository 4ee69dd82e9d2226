#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kymo/scope.h"

namespace kymo::report {

// How a duration is written: `automatic` in the unit that suits it, the others all in one.
enum class Precision : unsigned char { automatic, ns, us, ms, s };

// A tree of scopes, flattened, as a table: duration, category, bytes and name of each, what is in
// none of them, and the total. What does not count in the total stands in brackets.
std::string timing_table(const std::vector<ScopeRecord>& scopes, Precision precision);
// The same summed by category: duration, share, bytes, category.
std::string category_table(const std::vector<ScopeRecord>& scopes, Precision precision);

// A tree as nested objects, parts in `components`; what is empty or false is left out. Null where
// there are no scopes. `left_out`: how many scopes it lacks, `scopes_left_out` in the root.
nlohmann::json timing_json(const std::vector<ScopeRecord>& scopes, std::uint64_t left_out);

}  // namespace kymo::report
