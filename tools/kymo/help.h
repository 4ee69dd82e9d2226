#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "verbs.h"

namespace kymo::cli {

// Lets `kymo --help` begin with the verbs, by groups, and end with the options.
void group_verbs(CLI::App& app);

// The words of the command line after the program's name, with the kind `process` after a verb that
// takes kinds, if no kind is typed: `dump web` becomes `dump process web`, and `run -- true` becomes
// `run process -- true`. A verb alone, or with --help, stays as it is.
std::vector<std::string> with_kind(const CLI::App& app, std::vector<std::string> words);

}  // namespace kymo::cli
