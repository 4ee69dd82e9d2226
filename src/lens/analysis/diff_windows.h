#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/recording_diff.h"

namespace kymo::analysis {

// The names of the marks at which the recordings are aligned and the compared parts end. A name is
// empty if there is no such mark.
struct Aligned {
  std::string at;
  std::string until;
};
// Aligns the recordings, and sets in `runs` which part of each is compared.
//
// Errors: invalid_argument, naming the recording.
Result<Aligned> align_runs(const std::vector<DiffRun*>& runs, const DiffOptions& options);

}  // namespace kymo::analysis
