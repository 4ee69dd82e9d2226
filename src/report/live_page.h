#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::report {

// The page that kymod serves. `nonce`: as of a Page. Errors: unimplemented.
Result<std::string> live_page(const std::string& nonce);

}  // namespace kymo::report
