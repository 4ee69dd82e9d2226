#pragma once

#include <string>
#include <string_view>

#include "api/kymo/v1/checkpoint_options.pb.h"
#include "checkpoint/preflight/preflight.h"

namespace kymo::preflight {

// A dump that somebody plans.
struct PlannedDump {
  const v1::CheckpointOptions& asked;
  bool container = false;
  bool loses_user_namespace = false;  // see Options
  std::string bundle{};               // of the container. Empty: not known
  std::string_view renewed{};         // see leave_out_renewed()
  bool leave_running = false;
};

// The options that CRIU will have: those that were asked for, and those of its own configuration
// files (preflight/criu_config.h). For a container, these are also the files and the bind mounts
// that its runtime names to CRIU.
// Threads: any. Cost: reads these files.
Options options_of(const PlannedDump& planned);

// The options that the CRIU of a container with this config.json has by its configuration files alone.
Options options_by_files(const std::string& config_json);

}  // namespace kymo::preflight
