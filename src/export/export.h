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

// The format with this name. Errors: invalid_argument, naming the valid names.
Result<Format> parse_format(std::string_view name);
// The format that the ending of a file name means. Errors: invalid_argument, naming the valid
// endings.
Result<Format> format_of(std::string_view path);
const char* to_string(Format format);

struct ExportOptions {
  // OpenMetrics: write every row. Otherwise one row per millisecond, the resolution of Prometheus.
  bool every_row = false;
  // OpenMetrics: the prefix of the metrics' names, which may be "". If it is not set: the prefix on
  // /metrics of the recorded program, according to the metadata, or else kymo_.
  std::optional<std::string> metric_prefix;
  // ClickHouse: the prefix of the tables' names. If empty: the name of the recording.
  std::string table_prefix;
};

struct Exported {
  std::uint64_t rows = 0;
  std::uint64_t rows_passed_over = 0;  // undamaged rows that the format has no place for
  std::vector<std::string> notes;      // a sentence for everything that does not fit the format
};

// Writes the rows that `summary` was made of, and the metadata, to `path`. An existing file is
// replaced when the new one is complete; if the export fails, it stays unchanged. "-" is standard
// output, which is not possible for SQLite.
//
// Errors: those of reading and writing.
//         aborted if the recording was changed after `summary` was made.
// Cost:   the memory of the readers and a few MiB, for a recording of any size. OpenMetrics needs
//         one column after the other, and therefore temporarily 8 bytes of disk for each value.
Result<Exported> export_recording(const analysis::Summary& summary, Format format,
                                  const std::string& path, const ExportOptions& options = {});

}  // namespace kymo::exporting
