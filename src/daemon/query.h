#pragma once

#include <cstdint>
#include <string>

#include "kymo/result.h"

namespace kymo::daemon {

// A number of a request; empty: `otherwise`. Errors: invalid_argument, with what is allowed.
Result<std::uint64_t> parse_number(const std::string& text, const std::string& name,
                                   std::uint64_t otherwise, std::uint64_t most);

}  // namespace kymo::daemon
