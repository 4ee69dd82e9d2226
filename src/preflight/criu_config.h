#pragma once

#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace kymo::preflight {

// The files in which CRIU looks for options of its own, before those of kymod: for all users, and
// of the user whose home directory this is (empty: none).
std::vector<std::string> criu_config_files(const std::string& home);

// Adds the options of a configuration file of CRIU that matter here (criu(8), "Configuration
// files"). A file that cannot be read has none.
// Threads: any. Cost: reads the file.
void add_configured(const std::string& file, Options& options);

}  // namespace kymo::preflight
