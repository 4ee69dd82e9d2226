#pragma once

#include <string>
#include <string_view>

namespace kymo {

// Some sources are read more seldom than rows are taken, and a row has their newest values. The column
// profiler_NAME_age_ns then says how long before the row the values of the columns NAME_... were read. Their rates are
// those between these times, in reports, in pages (src/lens/pages/recording.js) and in Python (scripts/kymo_recording.py).
//
// Returns the name of that column for a column of a source.
inline std::string age_column_of(std::string_view column) {
  return "profiler_" + std::string(column.substr(0, column.find('_'))) + "_age_ns";
}

}  // namespace kymo
