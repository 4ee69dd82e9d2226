#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::daemon {

// CRIU's statistics in the form of kymod's JSON files and of its API. A figure that CRIU left out
// is left out here, too.
nlohmann::json to_json(const criu::DumpStats& stats);
nlohmann::json to_json(const criu::RestoreStats& stats);
nlohmann::json to_json(const std::vector<runtime::PreDumpRound>& rounds);
v1::PreDump to_api(const runtime::PreDumpRound& round);
v1::DumpStats to_api(const criu::DumpStats& stats);
v1::RestoreStats to_api(const criu::RestoreStats& stats);

// How long the processes stood still, by these statistics: diagnosis::stood_still_ns().
std::uint64_t stood_still_ns(const v1::DumpStats& stats);

}  // namespace kymo::daemon
