#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::analysis {

// The recordings that `path` means: the file itself, or those of a checkpoint's directory
// (DIR/recordings/*.tsv), or those that lie in a directory (DIR/*.tsv), in natural order (dump,
// restore, restore-2, restore-10). Lists of gaps are none. Errors: not_found, saying where it
// looked.
// invalid_argument for a companion file given as if it were a recording, naming the recording.
Result<std::vector<std::string>> find_recordings(const std::string& path);

// Whether it is a file that stands beside a recording: NAME.gaps.tsv, NAME.meta.json.
bool is_companion(const std::string& path);

// `paths` without the companion files of recordings that are among them, as they come out of the
// shell's *.tsv. Others stay: who is given one alone says so.
std::vector<std::string> without_companions(const std::vector<std::string>& paths);

// Those of all of `paths`, in that order, without companion files. Errors: as find_recordings().
Result<std::vector<std::string>> find_all_recordings(const std::vector<std::string>& paths);

// Those that stand for `path` in a comparison: the file, which must be a recording; of a
// checkpoint, the one called `name` (empty: its dump's, or the first); of another folder all, as so
// many runs. Errors: as above; of opening the file; not_found where there is none called `name`.
Result<std::vector<std::string>> recordings_to_compare(const std::string& path,
                                                       const std::string& name);

}  // namespace kymo::analysis
