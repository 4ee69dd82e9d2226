#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::analysis {

// The recordings that `path` means: the file itself, or those of a checkpoint's directory
// (DIR/recordings/*.tsv), or those that lie in a directory (DIR/*.tsv), in natural order (dump,
// restore, restore-2, restore-10). Lists of gaps are none. Errors: not_found, saying where it
// looked.
Result<std::vector<std::string>> find_recordings(const std::string& path);

}  // namespace kymo::analysis
