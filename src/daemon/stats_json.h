#pragma once

#include <nlohmann/json.hpp>

#include "api/kymo/v1/kymo.pb.h"
#include "criu/stats.h"

namespace kymo::daemon {

// CRIU's statistics as the files that we write and the API show them; what CRIU left out stays out.
nlohmann::json to_json(const criu::DumpStats& stats);
nlohmann::json to_json(const criu::RestoreStats& stats);
v1::DumpStats to_api(const criu::DumpStats& stats);
v1::RestoreStats to_api(const criu::RestoreStats& stats);

}  // namespace kymo::daemon
