#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/summary.h"
#include "kymo/result.h"

// Recordings in the formats of other tools (docs/export.md).
namespace kymo::exporting {

enum class Format : std::uint8_t { perfetto, openmetrics, csv, sqlite, clickhouse };

// By its name; invalid_argument with the names that there are.
Result<Format> parse_format(std::string_view name);
// By the ending of a file's name; invalid_argument with the endings that there are.
Result<Format> format_of(std::string_view path);
const char* to_string(Format format);

struct ExportOptions {
  // OpenMetrics: every row. Else one row a millisecond, which is what Prometheus can keep.
  bool every_row = false;
  // OpenMetrics: what the families' names begin with, may be empty; none: as the metadata say that
  // the recording's own program serves them, else kymo_.
  std::optional<std::string> metric_prefix;
  // ClickHouse: what its tables' names begin with; empty: after the recording.
  std::string table_prefix;
};

struct Exported {
  std::uint64_t rows = 0;
  std::uint64_t rows_passed_over = 0;  // whole rows that the format has no place for
  std::vector<std::string> notes;      // what does not fit the format, a sentence each
};

// Writes the rows that `summary` was made of, with what stands beside them, to `path`: a file there
// is replaced when the new one is whole, and untouched when it will not be; "-" is standard output,
// which SQLite cannot write to.
//
// Cost:   the readers' memory and a few MiB, whatever the recording's size. OpenMetrics, which
//         wants one column after the other, needs 8 bytes a value of disk meanwhile.
// Errors: of reading and writing; aborted where the recording was changed since it was summed up.
Result<Exported> export_recording(const analysis::Summary& summary, Format format,
                                  const std::string& path, const ExportOptions& options = {});

}  // namespace kymo::exporting
