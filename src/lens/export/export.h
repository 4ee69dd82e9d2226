#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/summary.h"

// Recordings in the formats of other tools (docs/export.md).
namespace kymo::exporting {

enum class Format : std::uint8_t { perfetto, openmetrics, csv, sqlite, clickhouse, otlp };

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
  std::uint64_t columns = 0;
  std::uint64_t spans = 0;             // of OTLP, which has no rows and columns
  std::uint64_t rows_passed_over = 0;  // undamaged rows that the format has no place for
  std::vector<std::string> notes;      // a sentence for everything that does not fit the format
};

struct Files;

// Where an export goes. All files are opened when it is made. So the recording can be read, and the
// files be written, in a process that cannot open files for writing (confine/run.h).
//
// Threads:   one at a time.
// Ownership: owns an unfinished file, which the destructor removes.
class Destination {
 public:
  // An existing file at `path` is replaced when the new one is complete; if the export fails, it
  // stays unchanged. "-" is standard output, which is not possible for SQLite.
  //
  // `parts`: the files of the recording (analysis::join_parts()).
  //
  // Errors: those of making the files. invalid_argument if `path` is a file of the recording.
  static Result<Destination> open(const std::vector<std::string>& parts, Format format,
                                  const std::string& path);
  Destination(Destination&& other) noexcept;
  Destination& operator=(Destination&& other) = delete;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  ~Destination();

  [[nodiscard]] Format format() const { return format_; }
  [[nodiscard]] Files& files() const { return *files_; }
  // The descriptors of the files, for a process that writes them (confine::Bounds). Standard output
  // is not among them.
  [[nodiscard]] std::vector<int> descriptors() const;
  // Gives the complete file its final name.
  Result<void> publish();

 private:
  Destination(Format format, std::unique_ptr<Files> files);

  Format format_;
  std::unique_ptr<Files> files_;
};

// Writes the rows that `summary` was made of, and the metadata. Call publish() after it, also if it
// was called in a child process.
//
// Errors: those of reading and writing.
//         aborted if the recording was changed after `summary` was made.
// Cost:   the memory of the readers and a few MiB, for a recording of any size. OpenMetrics needs
//         one column after the other, and therefore temporarily 8 bytes of disk for each value.
Result<Exported> export_recording(const analysis::Summary& summary, const Destination& to,
                                  const ExportOptions& options = {});

}  // namespace kymo::exporting
