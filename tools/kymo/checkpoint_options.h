#pragma once

#include <CLI/CLI.hpp>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// Adds the flags for further options of CRIU, which a dump and a restore have. They set `options`.
void add_checkpoint_options(CLI::App& verb, v1::CheckpointOptions& options);
// Adds the flags that only a restore has.
void add_restore_only_options(CLI::App& verb, v1::CheckpointOptions& options);
// Adds the flags that only a dump has.
void add_dump_only_options(CLI::App& verb, v1::CheckpointOptions& options);

}  // namespace kymo::cli
