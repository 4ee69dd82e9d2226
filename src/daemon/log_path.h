#pragma once

#include <string>
#include <vector>

namespace kymo::daemon {

// Where the daemon-wide recording goes. A service is started again with the arguments that it had:
// what was recorded before stays, and the new recording is NAME.tsv, or where there are files of
// such a recording NAME-2.tsv, NAME-3.tsv, ...: the number after the highest, so that numbers grow
// with time also where the first recordings were removed. Rotation's parts are NAME.1.tsv,
// NAME-2.1.tsv and so on.
std::string free_log_path(const std::string& asked);

// The parts that recordings asked for by this name have left, oldest first.
std::vector<std::string> earlier_parts(const std::string& asked);

}  // namespace kymo::daemon
