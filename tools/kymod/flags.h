#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo {

// Adds all flags of kymod to its parser, which sets `config` and, if it refuses a value, `refused`.
// Both must outlive the parser.
void add_flags(CLI::App& app, daemon::Config& config, Result<void>& refused);

// The help with the advanced flags, too.
std::string help_with_advanced(CLI::App& app);

}  // namespace kymo
