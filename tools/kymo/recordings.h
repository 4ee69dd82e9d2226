#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::cli {

// Waits up to 3 s for recordings that kymod is about to finish, and says so on stderr.
void wait_for_recordings(const std::vector<std::string>& paths);

// The file to write for each recording: the one that was asked for; of several, each gets its own,
// out.csv becomes out-dump.csv and out-restore.csv. Errors: invalid_argument where two would get
// the same.
Result<std::vector<std::string>> outputs_for(const std::string& asked,
                                             const std::vector<std::string>& recordings);

}  // namespace kymo::cli
