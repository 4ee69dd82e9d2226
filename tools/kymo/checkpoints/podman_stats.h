#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// The same fields that `podman container checkpoint --print-stats` and `restore --print-stats`
// print (podman 4.3, pkg/domain/entities/containers.go), so that the same programs can read them.
// Times are in microseconds. podman's durations are those that podman reported. Of what is not podman's,
// podman's own is missing, and the runtime's is response.runtime_time_ns or, of a process, the time that CRIU ran.
// One field is added: kymod's duration. CRIU's statistics that are 0 are left out. `raw_input`: the target as the user
// gave it.
nlohmann::ordered_json podman_stats(const v1::DumpResponse& response, const std::string& raw_input);
nlohmann::ordered_json podman_stats(const v1::RestoreResponse& response,
                                    const std::string& raw_input);

}  // namespace kymo::cli
