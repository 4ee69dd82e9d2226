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

// Those that stand for `path` in a comparison: the file, which must be a recording; of a
// checkpoint, the one called `name` (empty: its dump's, or the first); of another folder all, as so
// many runs. Errors: as above; of opening the file; not_found where there is none called `name`.
Result<std::vector<std::string>> recordings_to_compare(const std::string& path,
                                                       const std::string& name);

}  // namespace kymo::analysis
