#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::report {

// What the API says, as JSON: one shape, whether kymo prints it or the page asks for it. What is
// not known is null.

nlohmann::json to_json(const v1::Checkpoint& checkpoint);
nlohmann::json to_json(const v1::DumpStats& stats);
nlohmann::json to_json(const v1::Job& job);
nlohmann::json to_json(const v1::Progress& progress);
nlohmann::json to_json(const v1::Recorder& recorder);
nlohmann::json to_json(const v1::RestoreStats& stats);

// An enum's value as the JSON and the tables have it: "running" for RUNNING.
std::string lower(std::string name);

}  // namespace kymo::report
