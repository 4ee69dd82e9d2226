#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "lens/analysis/summary.h"
#include "lens/export/export.h"
#include "lens/export/export_file.h"

// One function for each format, which writes the whole content. export.cc opens the files.
namespace kymo::exporting {

// An SQLite database that is being made.
//
// Threads: one at a time. A child process may call write() instead, because the database has no
//          locks.
class SqliteFile {
 public:
  // Errors: those of PendingFile and of SQLite.
  static Result<std::unique_ptr<SqliteFile>> create(const std::string& path);

  Result<void> write(const analysis::Summary& summary);
  // SQLite's descriptors, and the one that holds the lock of the file.
  [[nodiscard]] std::vector<int> descriptors() const;
  // Gives the complete file its final name.
  Result<void> publish();

 private:
  struct Closer {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  explicit SqliteFile(PendingFile pending) : pending_(std::move(pending)) {}

  PendingFile pending_;
  std::unique_ptr<sqlite3, Closer> db_;
};

// The open files of an export.
struct Files {
  std::unique_ptr<ExportFile> text;      // of every format but SQLite
  std::unique_ptr<SqliteFile> database;  // of SQLite
  FileDescriptor columns;                // of OpenMetrics, for a ColumnStore
};

Result<void> write_csv(const analysis::Summary& summary, ExportFile& file);
Result<void> write_trace_json(const analysis::Summary& summary, ExportFile& file);
// Errors: failed_precondition if the recording has no scopes.
Result<void> write_otlp(const analysis::Summary& summary, ExportFile& file, Exported& exported);
Result<void> write_clickhouse(const analysis::Summary& summary, const ExportOptions& options,
                              ExportFile& file);
// Takes `files.columns` for the temporary column store.
Result<void> write_open_metrics(const analysis::Summary& summary, const ExportOptions& options,
                                Files& files, Exported& exported);

}  // namespace kymo::exporting
