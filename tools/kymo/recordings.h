#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::cli {

// Waits up to 3 s for recordings that kymod is about to finish, and prints a note on stderr.
void wait_for_recordings(const std::vector<std::string>& paths);

// The output file for each recording. A single recording gets `asked`. Of several, each gets its
// own: out.csv becomes out-dump.csv and out-restore.csv.
//
// Errors: invalid_argument if two recordings would get the same file.
Result<std::vector<std::string>> outputs_for(const std::string& asked,
                                             const std::vector<std::string>& recordings);

}  // namespace kymo::cli
