#pragma once

#include <CLI/CLI.hpp>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// Adds the flags for further options of CRIU. They set `options`.
void add_checkpoint_options(CLI::App& verb, v1::CheckpointOptions& options);

}  // namespace kymo::cli
