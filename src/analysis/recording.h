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

// A recording on disk: the rows, and what stands beside them as far as it is whole.
struct Recording {
  std::string path;
  std::vector<ColumnInfo> columns;   // in the order of the header
  std::optional<Metadata> metadata;  // none: missing or unreadable, and a note says so
  std::optional<Gaps> gaps;          // none: neither the file nor the metadata lists them
  Finish finish = Finish::ended;     // also where there is no metadata to say otherwise
  std::vector<std::string> notes;    // what is missing or does not fit, a sentence each
};

// Looks at a recording's header, metadata and gaps; the rows are read by those who want them
// (TsvReader). Errors: no recording at `path`; metadata of a newer version. All else is noted.
Result<Recording> open_recording(const std::string& path);

using kymo::recording_stem;

}  // namespace kymo::analysis
