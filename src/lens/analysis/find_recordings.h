#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::analysis {

// The recordings at `path`: the file itself, those of a checkpoint (DIR/recordings/*.tsv), or those
// in the directory (DIR/*.tsv). They are in natural order (dump, restore, restore-2, restore-10).
// Companion files are left out.
//
// Errors: not_found, saying where it looked.
//         invalid_argument if `path` is a companion file, naming the recording.
Result<std::vector<std::string>> find_recordings(const std::string& path);

// Whether `path` is a companion file by its name: NAME.gaps.tsv or NAME.meta.json.
bool is_companion(const std::string& path);

// `paths` without the companion files whose recording, or a later part of it, is in `paths`, too: the
// shell's *.tsv matches both. Other companion files stay, so that the caller reports them as an error.
std::vector<std::string> without_companions(const std::vector<std::string>& paths);

// The recordings at all of `paths`, in that order, without companion files.
//
// Errors: those of find_recordings().
Result<std::vector<std::string>> find_all_recordings(const std::vector<std::string>& paths);

// The recordings at `path` that a comparison uses:
// - If it is a file: this file, which must be a recording.
// - If it is a checkpoint: the recording called `name`, with or without its ending. If `name` is empty, the recording of the
//   dump, or else the first one.
// - If it is another folder: all recordings in it, each as one run.
//
// Errors: those of find_recordings() and of opening the file.
//         invalid_argument if `path` is neither a folder nor a regular file.
//         not_found if the checkpoint has no recording called `name`.
Result<std::vector<std::string>> recordings_to_compare(const std::string& path,
                                                       const std::string& name);

}  // namespace kymo::analysis
