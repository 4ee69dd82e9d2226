#pragma once

#include <string>

namespace kymo::daemon {

// Where the daemon-wide recording goes. A service is started again with the arguments that it had:
// what was recorded before stays, and the new recording takes the first free of NAME.tsv,
// NAME-2.tsv, NAME-3.tsv, ... Rotation's parts are NAME.1.tsv and so on, so the two never meet.
std::string free_log_path(const std::string& asked);

}  // namespace kymo::daemon
