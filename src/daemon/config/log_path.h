#pragma once

#include <string>
#include <vector>

namespace kymo::daemon {

// Returns the path for a new daemon-wide recording, given the path NAME.tsv that was asked for. A
// service is always started with the same arguments, and must not overwrite earlier recordings. If
// there are none, the new one is NAME.tsv. Otherwise it is NAME-N.tsv, where N is one more than the
// highest number in use (NAME.tsv counts as 1). So a newer recording has a higher number, even if
// the first ones were removed. The parts of a rotation are NAME.1.tsv, NAME-2.1.tsv and so on.
std::string free_log_path(const std::string& asked);

// The parts of the earlier recordings that were asked for by this name, oldest first.
std::vector<std::string> earlier_parts(const std::string& asked);

}  // namespace kymo::daemon
