#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::report {

// The page that kymod serves. `nonce`: see Page.
//
// Errors: unimplemented if the pages are not built in (CMake option KYMO_WEB).
Result<std::string> live_page(const std::string& nonce);

}  // namespace kymo::report
