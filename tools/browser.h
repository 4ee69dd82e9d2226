#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::cli {

// By the program that the desktop opens addresses with; BROWSER names another. Waits for that
// program. Errors: it cannot be started, or fails; the line says what to do.
Result<void> open_in_browser(const std::string& url);

}  // namespace kymo::cli
