#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kymo/result.h"

namespace kymo::store {

// The last error of SQLite, with the message "cannot TRIED in PATH: reason".
Error sqlite_error(sqlite3* db, std::string_view tried, const std::string& path);

// A row of a result. Columns are numbered from 0.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  // The bytes of a blob. Valid until the next row.
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] bool null(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// Bytes that are no text. Refers to them.
struct Blob {
  std::string_view bytes;
};

using Value = std::variant<std::nullptr_t, std::int64_t, std::string, Blob>;

// One SQLite connection. Values are bound to prepared statements and are never part of a
// statement's text. Prepared statements are kept for the next call with the same text.
//
// Threads:   one at a time.
// Ownership: owns the connection.
// Errors:    those of sqlite_error().
class Database {
 public:
  enum class Access : std::uint8_t {
    change,  // the file is made if it is missing
    read,
  };
  static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                Access access = Access::change);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs one statement, and calls `row` for each row of its result. `tried` is what an error
  // message says was tried.
  Result<void> run(std::string_view tried, std::string_view sql,
                   const std::vector<Value>& values = {},
                   const std::function<void(const Row&)>& row = nullptr);
  // Runs `changes` in a transaction. If it returns an error, all its changes are undone.
  Result<void> transaction(const std::function<Result<void>()>& changes);
  // Whether a statement waits for another process that has locked the file (default: for two
  // seconds), or fails at once.
  void wait_for_locks(bool wait);
  // The number of rows that the last statement changed.
  [[nodiscard]] int changed() const;

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  // Takes a statement that was prepared before, or prepares it. Null if that failed.
  Statement take(std::string_view sql);
  void give_back(std::string_view sql, Statement statement);

  sqlite3* db_;
  std::string path_;
  std::map<std::string, Statement, std::less<>> prepared_;  // those that do not run now
};

}  // namespace kymo::store
