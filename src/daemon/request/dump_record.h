#pragma once

#include <nlohmann/json.hpp>

#include "daemon/request/target.h"

namespace kymo::daemon {

// Parts of the checkpoint.json of a dump.

// What a restore of the container needs to know.
nlohmann::json container_json(const Target& target);
// The options that a restore must be given again.
nlohmann::json options_json(const v1::CheckpointOptions& options);
// The machine. It does not change while kymod runs.
const nlohmann::json& machine_json();

}  // namespace kymo::daemon
