#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::runtime {

// Refuses a container with a terminal of runc or containerd ("terminal": true in its config.json,
// `spec`). Its dump would succeed, but runc restores it only for a caller that takes the other end
// of the terminal and keeps it, which kymod does not do.
// Errors: failed_precondition, one line that begins with `tried`. A spec that is no JSON passes.
Result<void> refuse_terminal(const std::string& tried, std::string_view spec);

}  // namespace kymo::runtime
