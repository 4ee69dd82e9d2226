#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kymo::cli {

// One line about a command line that CLI11 refused: what is wrong with it, and what to type
// instead. `commands`: the names of all verbs, also of those that were not added to `app`. Empty if
// the program has no verbs. `first`: the first word after the program's name; CLI11 does not tell it
// from those behind a verb.
std::string explain_usage(const CLI::ParseError& error, const CLI::App& app,
                          const std::vector<std::string>& commands = {},
                          const std::string& first = "");

}  // namespace kymo::cli
