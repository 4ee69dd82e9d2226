#pragma once

#include <string>

namespace kymo::cli {

// Parses the value of an option that is a time such as "30s", and returns it in nanoseconds. CLI11
// has a parser for units, but its error message does not name the valid units.
// Throws CLI::ValidationError. `without`: what to do if the longest time is too short.
double nanoseconds_of(const std::string& option, const std::string& text,
                      const std::string& without);

}  // namespace kymo::cli
