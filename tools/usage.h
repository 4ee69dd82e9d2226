#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kymo::cli {

// One line about a command line that CLI11 refused: what is wrong with it, and what to type
// instead. `commands`: the names of all verbs, also of those that were not added to `app`. Empty if
// the program has no verbs.
std::string explain_usage(const CLI::ParseError& error, const CLI::App& app,
                          const std::vector<std::string>& commands);

}  // namespace kymo::cli
