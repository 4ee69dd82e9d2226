#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/finish.h"
#include "analysis/gap_file.h"
#include "analysis/metadata.h"
#include "analysis/tsv_reader.h"
#include "base/recording_name.h"

namespace kymo::analysis {

// A recording on disk, without its rows: its columns, and what its companion files say.
struct Recording {
  std::string path;
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

// A sentence if the recording is one part of a longer one: it has not all of its rows. Otherwise
// empty.
std::string part_sentence(const Metadata& metadata);

using kymo::recording_stem;

}  // namespace kymo::analysis
