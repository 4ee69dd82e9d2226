#pragma once

#include <string>
#include <vector>

#include "checkpoint/preflight/preflight.h"

namespace kymo::preflight {

// Where each CRIU looks for options of its own, before those of kymod.
inline constexpr char kConfigOfAll[] = "/etc/criu/default.conf";
// Where a CRIU looks that has the environment of this program: also in the home directory (HOME), and in the file that
// CRIU_CONFIG_FILE names.
std::vector<std::string> criu_config_files();

// The action scripts of these files, each with its file: "/a.sh (in FILE)". A file that cannot be read has none.
// Threads: any. Cost: reads the files.
std::vector<std::string> configured_scripts(const std::vector<std::string>& files);

// Adds the options of a configuration file of CRIU that matter here (criu(8), "Configuration
// files"). A file that cannot be read has none.
// Threads: any. Cost: reads the file.
void add_configured(const std::string& file, Options& options);

}  // namespace kymo::preflight
