#pragma once

#include <string>

#include "base/time_text.h"

namespace kymo::cli {

// Parses the value of an option that is a time such as "30s", and returns it in nanoseconds. CLI11
// has a parser for units, but its error message does not name the valid units.
// Throws CLI::ValidationError, also for 0. `without`: what to do if the longest time is too short.
double nanoseconds_of(const std::string& option, const std::string& text,
                      const std::string& without, NoUnit no_unit = NoUnit::is_refused);

}  // namespace kymo::cli
