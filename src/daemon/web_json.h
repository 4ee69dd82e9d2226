#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The API's messages as the page gets them, by the names that `kymo --json` has.
nlohmann::json to_json(const v1::Job& job);
nlohmann::json to_json(const v1::Checkpoint& checkpoint);
nlohmann::json to_json(const v1::Progress& progress);

// A number of a request; empty: `otherwise`. Errors: invalid_argument, with what is allowed.
Result<std::uint64_t> parse_number(const std::string& text, const std::string& name,
                                   std::uint64_t otherwise, std::uint64_t most);

}  // namespace kymo::daemon
