#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// What `podman container checkpoint --print-stats` and `restore --print-stats` print, field for
// field (podman 4.3, pkg/domain/entities/containers.go), so that what reads theirs reads ours:
// microseconds; kymod's duration stands where podman's does, CRIU's life where the runtime's does;
// of CRIU's statistics those that are 0 are left out. `raw_input`: the target as it was given.
nlohmann::ordered_json podman_stats(const v1::DumpResponse& response, const std::string& raw_input);
nlohmann::ordered_json podman_stats(const v1::RestoreResponse& response,
                                    const std::string& raw_input);

}  // namespace kymo::cli
