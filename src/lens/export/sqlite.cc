// An SQLite database. The table of samples has the columns of the recording; other tables have the
// rest.

#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "base/json_text.h"
#include "base/sqlite/database.h"
#include "lens/export/export_file.h"
#include "lens/export/formats.h"
#include "lens/export/parts.h"
#include "lens/export/text.h"
#include "lens/report/phases.h"

namespace kymo::exporting {
namespace {

// SQLite's default limit of columns. Debian does not change it.
constexpr std::size_t kMaxColumns = 2000;

using Cell = std::variant<std::uint64_t, std::int64_t, std::string>;

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    if (c != '\0') out += c;
  }
  return out + "\"";
}

// Creates and fills one table. After the first error, which is kept, nothing more is written.
class Table {
 public:
  // `columns`: one definition for each column.
  Table(sqlite3* db, std::string path, const std::string& name,
        const std::vector<std::string>& columns)
      : db_(db), path_(std::move(path)) {
    std::string create = "CREATE TABLE " + name + " (";
    std::string insert = "INSERT INTO " + name + " VALUES (";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      create += (i == 0 ? "" : ", ") + columns[i];
      insert += i == 0 ? "?" : ",?";
    }
    create += ")";
    insert += ")";
    if (sqlite3_exec(db_, create.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK ||
        sqlite3_prepare_v2(db_, insert.c_str(), -1, &insert_, nullptr) != SQLITE_OK) {
      written_ = store::sqlite_error(db_, "create a table", path_);
    }
  }
  ~Table() { sqlite3_finalize(insert_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // SQLite's integers are below 2^63. A larger number becomes text of 20 digits, so that it is
  // exact and is sorted after the other numbers.
  void bind(int column, std::uint64_t value) {
    if (!written_) return;
    if (value <= INT64_MAX)
      return bound(sqlite3_bind_int64(insert_, column, static_cast<sqlite3_int64>(value)));
    std::string digits;
    append_number(value, digits);
    digits.insert(0, 20 - digits.size(), '0');
    bound(sqlite3_bind_text(insert_, column, digits.data(), static_cast<int>(digits.size()),
                            SQLITE_TRANSIENT));
  }
  void bind(int column, std::int64_t value) {
    if (written_) bound(sqlite3_bind_int64(insert_, column, value));
  }
  void bind(int column, const std::string& value) {
    if (!written_) return;
    const std::string text = valid_utf8(value);
    bound(sqlite3_bind_text64(insert_, column, text.data(), text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8));
  }
  void end_row() {
    if (!written_) return;
    if (sqlite3_step(insert_) != SQLITE_DONE || sqlite3_reset(insert_) != SQLITE_OK) {
      written_ = store::sqlite_error(db_, "write", path_);
    }
  }
  void add(const std::vector<Cell>& cells) {
    int column = 0;
    for (const Cell& cell : cells) {
      std::visit([&](const auto& value) { bind(++column, value); }, cell);
    }
    end_row();
  }
  [[nodiscard]] const Result<void>& written() const { return written_; }

 private:
  void bound(int code) {
    if (code != SQLITE_OK) written_ = store::sqlite_error(db_, "write", path_);
  }

  sqlite3* db_;
  std::string path_;
  sqlite3_stmt* insert_ = nullptr;
  Result<void> written_;
};

Result<void> run(sqlite3* db, const char* sql, const std::string& path) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return store::sqlite_error(db, "write", path);
}

Result<void> add_properties(const analysis::Summary& summary, sqlite3* db,
                            const std::string& path) {
  Table table(db, path, "recording", {"name TEXT PRIMARY KEY", "value TEXT"});
  for (const auto& [name, value] : properties_of(summary)) table.add({name, value});
  return table.written();
}

Result<void> add_metrics(const analysis::Summary& summary, const std::vector<std::string>& names,
                         sqlite3* db, const std::string& path) {
  Table table(db, path, "metrics",
              {"column_name TEXT PRIMARY KEY", "name TEXT", "metric TEXT", "kind TEXT", "unit TEXT",
               "help TEXT", "fields TEXT"});
  for (std::size_t i = 0; i < summary.columns.size(); ++i) {
    const analysis::ColumnInfo& info = summary.columns[i].info;
    nlohmann::json fields = nlohmann::json::object();
    for (const auto& [field, value] : info.fields) fields[field] = value;
    table.add({names[i + 1], info.name, info.metric, std::string(analysis::to_string(info.kind)),
               std::string(info.described ? analysis::to_string(info.unit) : ""), info.help,
               json_text(fields)});
  }
  return table.written();
}

Result<void> add_phases(const analysis::Summary& summary, sqlite3* db, const std::string& path) {
  Table table(db, path, "phases", {"name TEXT", "begin_ns", "end_ns"});
  for (const diagnosis::Phase& phase : report::phases_of(summary)) {
    table.add({phase.name, phase.begin_ns, phase.end_ns});
  }
  return table.written();
}

Result<void> add_scopes(const analysis::Summary& summary, sqlite3* db, const std::string& path) {
  Table table(db, path, "scopes",
              {"id INTEGER PRIMARY KEY", "parent INTEGER", "name TEXT", "category TEXT",
               "start_ns INTEGER", "duration_ns INTEGER", "bytes INTEGER", "error TEXT",
               "parallel INTEGER", "redundant INTEGER", "unfinished INTEGER", "thread INTEGER"});
  const std::vector<report::RecordedScope> scopes = scopes_of(summary);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const report::RecordedScope& scope = scopes[i];
    const auto parent = scope.parent == report::RecordedScope::kNoParent
                            ? std::int64_t{-1}
                            : static_cast<std::int64_t>(scope.parent);
    table.add({static_cast<std::int64_t>(i), parent, scope.name, scope.category, scope.start_ns,
               scope.duration_ns, scope.bytes, scope.error, std::int64_t{scope.parallel},
               std::int64_t{scope.redundant}, std::int64_t{scope.unfinished}, scope.thread});
  }
  return table.written();
}

Result<void> add_gaps(const analysis::Summary& summary, sqlite3* db, const std::string& path) {
  Table table(db, path, "gaps", {"start_ns", "end_ns", "ticks", "cause TEXT"});
  const auto read = for_each_gap(summary, [&](const Gap& gap) {
    table.add({gap.start_ns, gap.end_ns, gap.ticks, std::string(analysis::to_string(gap.cause))});
  });
  return read ? table.written() : read;
}

Result<void> add_samples(const analysis::Summary& summary, const std::vector<std::string>& names,
                         sqlite3* db, const std::string& path) {
  // The columns have no types: with a type, SQLite would convert the text of a large number to an
  // inexact number.
  std::vector<std::string> columns;
  for (const std::string& name : names) columns.push_back(sql_name(name));
  Table table(db, path, "samples", columns);
  const auto read = for_each_block(summary, [&](const analysis::RowBlock& block, std::size_t rows) {
    for (std::size_t row = 0; row < rows && table.written(); ++row) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        table.bind(static_cast<int>(i) + 1, block.column(i)[row]);
      }
      table.end_row();
    }
  });
  return read ? table.written() : read;
}

Result<void> fill(const analysis::Summary& summary, sqlite3* db, const std::string& path) {
  const std::vector<std::string> names = table_columns(summary, true);
  // The file is new, and others see it only when it is complete, so it needs no journal.
  Result<void> done = run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", path);
  if (done) done = add_properties(summary, db, path);
  if (done) done = add_metrics(summary, names, db, path);
  if (done) done = add_phases(summary, db, path);
  if (done) done = add_scopes(summary, db, path);
  if (done) done = add_gaps(summary, db, path);
  if (done) done = add_samples(summary, names, db, path);
  if (done) done = run(db, "COMMIT", path);
  return done;
}

}  // namespace

Result<std::unique_ptr<SqliteFile>> SqliteFile::create(const std::string& path) {
  auto pending = PendingFile::create(path);
  if (!pending) return pending.error();
  std::unique_ptr<SqliteFile> file(new SqliteFile(std::move(pending).value()));
  sqlite3* opened = nullptr;
  // Locks would stay with the process that opens the file. PendingFile has locked it already.
  const int code = sqlite3_open_v2(file->pending_.temporary().c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-none");
  file->db_.reset(opened);
  if (code != SQLITE_OK) return store::sqlite_error(opened, "open", file->pending_.temporary());
  return file;
}

std::vector<int> SqliteFile::descriptors() const {
  std::vector<int> all;
  struct stat ours {};
  if (::fstat(pending_.fd(), &ours) != 0) return all;
  // SQLite does not say which descriptor it uses.
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    struct stat open {};
    if (::fstat(fd, &open) == 0 && open.st_dev == ours.st_dev && open.st_ino == ours.st_ino) {
      all.push_back(fd);
    }
  }
  return all;
}

Result<void> SqliteFile::write(const analysis::Summary& summary) {
  if (summary.columns.size() + 1 > kMaxColumns) {
    return Error{Code::out_of_range, "export to SQLite: the recording has " +
                                         std::to_string(summary.columns.size()) +
                                         " columns, and a table of SQLite at most 1999; "
                                         "choose csv or clickhouse"};
  }
  return fill(summary, db_.get(), pending_.temporary());
}

Result<void> SqliteFile::publish() {
  db_.reset();
  return pending_.publish();
}

}  // namespace kymo::exporting
