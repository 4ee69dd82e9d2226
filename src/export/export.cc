#include "export/export.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "export/export_file.h"
#include "export/formats.h"

namespace kymo::exporting {
namespace {

struct FormatName {
  Format format;
  std::string_view name;
  std::string_view ending;
};

// The first ending of each format is the one in the documents.
constexpr std::array<FormatName, 10> kFormats{{
    {Format::perfetto, "perfetto", ".json"},
    {Format::openmetrics, "openmetrics", ".om"},
    {Format::csv, "csv", ".csv"},
    {Format::sqlite, "sqlite", ".sqlite"},
    {Format::clickhouse, "clickhouse", ".sql"},
    {Format::perfetto, "", ".perfetto-trace"},
    {Format::openmetrics, "", ".openmetrics"},
    {Format::openmetrics, "", ".prom"},
    {Format::sqlite, "", ".db"},
    {Format::sqlite, "", ".sqlite3"},
}};

bool same_file(const std::string& a, const std::string& b) {
  struct stat first = {};
  struct stat second = {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Refuses to replace a file of the recording that is exported.
Result<void> spare_recording(const std::string& recording, const std::string& path) {
  const std::string stem = analysis::recording_stem(recording);
  for (const std::string& own : {recording, stem + ".meta.json", stem + ".gaps.tsv"}) {
    if (same_file(own, path)) {
      return Error{Code::invalid_argument,
                   "export to " + path + ": that is the recording itself; choose another file"};
    }
  }
  return {};
}

std::string folder_of(const std::string& path) {
  if (path == "-") return std::filesystem::temp_directory_path().string();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

const char* to_string(Format format) {
  return kFormats.at(static_cast<std::size_t>(format)).name.data();
}

Result<Format> parse_format(std::string_view name) {
  std::string all;
  for (const FormatName& known : kFormats) {
    if (known.name.empty()) continue;
    if (known.name == name) return known.format;
    all += (all.empty() ? "" : ", ") + std::string(known.name);
  }
  return Error{Code::invalid_argument,
               "no format is called \"" + std::string(name) + "\"; there are " + all};
}

Result<Format> format_of(std::string_view path) {
  std::string all;
  for (const FormatName& known : kFormats) {
    if (path.ends_with(known.ending)) return known.format;
    all += (all.empty() ? "" : ", ") + std::string(known.ending);
  }
  return Error{Code::invalid_argument, "the ending of " + std::string(path) +
                                           " says no format: give --format, or one of " + all};
}

Result<Exported> export_recording(const analysis::Summary& summary, Format format,
                                  const std::string& path, const ExportOptions& options) {
  if (auto spared = spare_recording(summary.recording.path, path); !spared) return spared.error();
  Exported exported;
  exported.rows = summary.rows;
  if (format == Format::sqlite) {
    if (path == "-") {
      return Error{Code::invalid_argument, "SQLite writes into a file alone: give --output FILE"};
    }
    if (auto written = write_sqlite(summary, path); !written) return written.error();
    return exported;
  }
  auto file = ExportFile::create(path);
  if (!file) return file.error();
  Result<void> written;
  switch (format) {
    case Format::perfetto:
      written = write_trace_json(summary, **file);
      break;
    case Format::csv:
      written = write_csv(summary, **file);
      break;
    case Format::clickhouse:
      written = write_clickhouse(summary, options, **file);
      break;
    case Format::openmetrics:
      written = write_open_metrics(summary, options, folder_of(path), **file, exported);
      break;
    case Format::sqlite:
      break;
  }
  if (written) written = (*file)->commit();
  if (!written) return written.error();
  return exported;
}

}  // namespace kymo::exporting
