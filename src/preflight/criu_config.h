#pragma once

#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace kymo::preflight {

// The files in which CRIU looks for options of its own, before those of kymod: for all users, and
// of the user whose home directory this is (empty: none).
std::vector<std::string> criu_config_files(const std::string& home);

// The action scripts of these files, each with its file: "/a.sh (in FILE)". A file that cannot be read has none.
// Threads: any. Cost: reads the files.
std::vector<std::string> configured_scripts(const std::vector<std::string>& files);

// Adds the options of a configuration file of CRIU that matter here (criu(8), "Configuration
// files"). A file that cannot be read has none.
// Threads: any. Cost: reads the file.
void add_configured(const std::string& file, Options& options);

}  // namespace kymo::preflight
