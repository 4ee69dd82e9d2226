#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::report {

// The API's messages as JSON. kymo and the page use the same form. Unknown values are null.

nlohmann::json to_json(const v1::Checkpoint& checkpoint);
nlohmann::json to_json(const v1::DumpStats& stats);
nlohmann::json to_json(const v1::Job& job);
nlohmann::json to_json(const v1::Progress& progress);
nlohmann::json to_json(const v1::Recorder& recorder);
nlohmann::json to_json(const v1::RestoreStats& stats);

// The name of an enum value as JSON and tables show it: "running" for RUNNING.
std::string lower(std::string name);

}  // namespace kymo::report
