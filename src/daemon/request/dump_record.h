#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "checkpoint/criu/images/image_codec.h"
#include "daemon/request/target.h"

namespace kymo::daemon {

// Parts of the checkpoint.json of a dump, and of its entry in the history.

// What a restore of the container needs to know.
nlohmann::json container_json(const Target& target);
// The options that a restore must be given again.
nlohmann::json options_json(const v1::CheckpointOptions& options);
// The machine. It does not change while kymod runs.
const nlohmann::json& machine_json();

// In store::Run::conditions of a dump whose restore was rehearsed.
inline constexpr std::string_view kProve = "prove";
inline constexpr std::string_view kSync = "sync";
// The options that change how long a dump takes, for store::Run::conditions. Only runs with the same ones
// are compared. `stream`: how the images were streamed; nothing: they were not.
std::string conditions_of(const v1::DumpRequest& asked, const std::optional<criu::Encoding>& stream,
                          bool memory_first, bool stacks);

}  // namespace kymo::daemon
