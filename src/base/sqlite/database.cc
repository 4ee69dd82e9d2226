#include "base/sqlite/database.h"

#include <memory>

namespace kymo::store {
namespace {

constexpr int kBusyMs = 2000;  // less than Store::kDiskAnswers

Code code_of(int extended) {
  switch (extended & 0xff) {
    case SQLITE_CONSTRAINT:
      return Code::already_exists;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::unavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::data_loss;
    case SQLITE_FULL:
      return Code::resource_exhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Code::permission_denied;
    default:
      return Code::internal;
  }
}

int bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    // A null destructor: SQLite neither copies nor frees the text, which outlives the statement.
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), nullptr, SQLITE_UTF8);
  }
  if (const auto* blob = std::get_if<Blob>(&value)) {
    return sqlite3_bind_blob64(statement, index, blob->bytes.data(), blob->bytes.size(), nullptr);
  }
  return sqlite3_bind_null(statement, index);
}

}  // namespace

Error sqlite_error(sqlite3* db, std::string_view tried, const std::string& path) {
  const int code = db != nullptr ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
  const char* reason = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  return Error{code_of(code),
               "cannot " + std::string(tried) + " in the database " + path + ": " + reason,
               db != nullptr ? sqlite3_system_errno(db) : 0};
}

std::string Row::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return text == nullptr ? std::string() : std::string(text, text + size);
}

std::int64_t Row::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string_view Row::bytes(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

bool Row::null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Access access) {
  sqlite3* db = nullptr;
  const int flags =
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
      (access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (sqlite3_open_v2(path.c_str(), &db, flags, nullptr) != SQLITE_OK) {
    const Error error = sqlite_error(db, "open the file", path);
    sqlite3_close(db);
    return error;
  }
  sqlite3_busy_timeout(db, kBusyMs);
  return std::unique_ptr<Database>(new Database(db, path));
}

Database::~Database() {
  prepared_.clear();
  sqlite3_close(db_);
}

Database::Statement Database::take(std::string_view sql) {
  if (const auto found = prepared_.find(sql); found != prepared_.end()) {
    Statement kept = std::move(found->second);
    prepared_.erase(found);
    return kept;
  }
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  return {raw, sqlite3_finalize};
}

void Database::give_back(std::string_view sql, Statement statement) {
  constexpr std::size_t kMaxKept = 64;
  sqlite3_reset(statement.get());  // ends its transaction
  if (prepared_.size() < kMaxKept) prepared_.try_emplace(std::string(sql), std::move(statement));
}

Result<void> Database::run(std::string_view tried, std::string_view sql,
                           const std::vector<Value>& values,
                           const std::function<void(const Row&)>& row) {
  Statement statement = take(sql);
  if (statement == nullptr) return sqlite_error(db_, tried, path_);
  int index = 0;
  for (const Value& value : values) {
    if (bind(statement.get(), ++index, value) != SQLITE_OK) {
      return sqlite_error(db_, tried, path_);
    }
  }
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (row) row(Row(statement.get()));
  }
  if (step != SQLITE_DONE) return sqlite_error(db_, tried, path_);
  give_back(sql, std::move(statement));
  return {};
}

Result<void> Database::transaction(const std::function<Result<void>()>& changes) {
  // IMMEDIATE takes the write lock now, with the busy timeout, and not in the middle of the
  // changes.
  if (Result<void> begun = run("begin a change", "BEGIN IMMEDIATE"); !begun) {
    return begun;
  }
  Result<void> done = changes();
  if (done) {
    done = run("commit a change", "COMMIT");
  }
  if (!done) {
    static_cast<void>(
        run("undo a change", "ROLLBACK"));  // if this fails, SQLite has undone it already
  }
  return done;
}

void Database::wait_for_locks(bool wait) {
  sqlite3_busy_timeout(db_, wait ? kBusyMs : 0);
}

int Database::changed() const {
  return sqlite3_changes(db_);
}

}  // namespace kymo::store
