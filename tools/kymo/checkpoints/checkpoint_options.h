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
// Takes the options of a dump or restore that no container runtime passes on to CRIU out of the
// help. If they are given, kymod refuses them and says why.
void hide_options_of_processes(CLI::App& verb);

}  // namespace kymo::cli
