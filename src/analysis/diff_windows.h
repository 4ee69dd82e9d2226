#pragma once

#include <string>
#include <vector>

#include "analysis/recording_diff.h"
#include "kymo/result.h"

namespace kymo::analysis {

// Where the recordings are aligned and what of each is compared, set in `runs`. The marks' names,
// or empty where there are none. Errors: invalid_argument, naming the recording.
struct Aligned {
  std::string at;
  std::string until;
};
Result<Aligned> align_runs(const std::vector<DiffRun*>& runs, const DiffOptions& options);

}  // namespace kymo::analysis
