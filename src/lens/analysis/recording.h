#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/recording_name.h"
#include "lens/analysis/finish.h"
#include "lens/analysis/gap_file.h"
#include "lens/analysis/metadata.h"
#include "lens/analysis/tsv_reader.h"

namespace kymo::analysis {

// A recording on disk, without its rows: its columns, and what its companion files say.
struct Recording {
  std::string path;                  // of the first part, if there are several
  std::vector<std::string> parts;    // the files, if there are several (analysis/joined_parts.h)
  std::vector<ColumnInfo> columns;   // in the order of the header
  std::optional<Metadata> metadata;  // empty if missing or unreadable; then there is a note
  std::optional<Gaps> gaps;          // empty if neither the file nor the metadata lists them
  Finish finish = Finish::ended;     // `ended` also if there is no metadata
  std::vector<std::string> notes;    // a sentence for everything that is missing or contradictory
};

// Reads the header, the metadata and the gaps of a recording. TsvReader reads the rows.
//
// Errors: there is no recording at `path`, or its metadata has a newer version. All other problems
//         become notes.
Result<Recording> open_recording(const std::string& path);

// The files with the rows, in their order.
std::vector<std::string> files_of(const Recording& recording);

// A sentence if the recording is one part of a longer one, or several: it has not all of its rows.
// Otherwise empty. `last_part`: the number of its last part, if it has several. `path`: that of its
// first part, beside which the others are; empty: it is not said whether they are still there.
std::string part_sentence(const Metadata& metadata, std::uint64_t last_part = 0,
                          const std::string& path = {});
// Whether a note is such a sentence about one part.
bool is_part_sentence(const std::string& note);
// A sentence if scopes had no room in the recording or in their trees. Otherwise empty.
std::string scopes_sentence(const Metadata& metadata);
// Whether a note is one of these two: what is in the files is whole, and nevertheless not all.
bool is_incomplete_sentence(const std::string& note);

using kymo::recording_stem;

}  // namespace kymo::analysis
