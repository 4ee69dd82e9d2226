#include "lens/export/export.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "lens/export/column_store.h"
#include "lens/export/export_file.h"
#include "lens/export/formats.h"

namespace kymo::exporting {
namespace {

struct FormatName {
  Format format;
  std::string_view name;
  std::string_view ending;
};

// The first ending of each format is the one in the documents.
constexpr std::array<FormatName, 11> kFormats{{
    {Format::perfetto, "perfetto", ".json"},
    {Format::openmetrics, "openmetrics", ".om"},
    {Format::csv, "csv", ".csv"},
    {Format::sqlite, "sqlite", ".sqlite"},
    {Format::clickhouse, "clickhouse", ".sql"},
    {Format::otlp, "otlp", ".otlp"},
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
               "unknown format \"" + std::string(name) + "\": choose one of " + all};
}

Result<Format> format_of(std::string_view path) {
  std::string all;
  for (const FormatName& known : kFormats) {
    if (path.ends_with(known.ending)) return known.format;
    all += (all.empty() ? "" : ", ") + std::string(known.ending);
  }
  return Error{Code::invalid_argument,
               "the name " + std::string(path) +
                   " does not show the format: give --format, or end the name with one of " + all};
}

Result<Destination> Destination::open(const std::vector<std::string>& parts, Format format,
                                      const std::string& path) {
  for (const std::string& part : parts) {
    if (auto spared = spare_recording(part, path); !spared) return spared.error();
  }
  auto files = std::make_unique<Files>();
  if (format == Format::sqlite) {
    if (path == "-") {
      return Error{Code::invalid_argument,
                   "an SQLite database cannot be written to standard output: give --output FILE"};
    }
    auto database = SqliteFile::create(path);
    if (!database) return database.error();
    files->database = std::move(database).value();
    return Destination(format, std::move(files));
  }
  auto text = ExportFile::create(path);
  if (!text) return text.error();
  files->text = std::move(text).value();
  if (format == Format::openmetrics) {
    auto columns = create_nameless_file(folder_of(path));
    if (!columns) return columns.error();
    files->columns = std::move(columns).value();
  }
  return Destination(format, std::move(files));
}

Destination::Destination(Format format, std::unique_ptr<Files> files)
    : format_(format), files_(std::move(files)) {}

Destination::Destination(Destination&& other) noexcept = default;

Destination::~Destination() = default;

std::vector<int> Destination::descriptors() const {
  if (files_->database) return files_->database->descriptors();
  std::vector<int> all{files_->text->fd()};
  if (files_->columns.valid()) all.push_back(files_->columns.get());
  return all;
}

Result<void> Destination::publish() {
  return files_->database ? files_->database->publish() : files_->text->publish();
}

Result<Exported> export_recording(const analysis::Summary& summary, const Destination& to,
                                  const ExportOptions& options) {
  Files& files = to.files();
  Exported exported;
  exported.rows = summary.rows;
  exported.columns = summary.columns.size();
  Result<void> written;
  switch (to.format()) {
    case Format::perfetto:
      written = write_trace_json(summary, *files.text);
      break;
    case Format::csv:
      written = write_csv(summary, *files.text);
      break;
    case Format::clickhouse:
      written = write_clickhouse(summary, options, *files.text);
      break;
    case Format::openmetrics:
      written = write_open_metrics(summary, options, files, exported);
      break;
    case Format::otlp:
      written = write_otlp(summary, *files.text, exported);
      break;
    case Format::sqlite:
      written = files.database->write(summary);
      break;
  }
  if (written && files.text) written = files.text->finish();
  if (!written) return written.error();
  return exported;
}

}  // namespace kymo::exporting
