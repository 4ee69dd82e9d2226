#include "daemon/database/schema.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kymo::store {
namespace {

constexpr std::int64_t kFormatVersion = 8;

constexpr std::string_view kFirstFormat[] = {
    "CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    R"(CREATE TABLE jobs (
         id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, command TEXT NOT NULL,
         pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, stdout_path TEXT NOT NULL,
         stderr_path TEXT NOT NULL, state TEXT NOT NULL, exit_status INTEGER,
         created_unix_ns INTEGER NOT NULL))",
    R"(CREATE TABLE checkpoints (
         id TEXT PRIMARY KEY, job_id TEXT NOT NULL, pid INTEGER NOT NULL, directory TEXT NOT NULL,
         created_unix_ns INTEGER NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL,
         image_bytes INTEGER NOT NULL, duration_ns INTEGER NOT NULL, stats_json TEXT NOT NULL))",
    "CREATE INDEX checkpoints_by_job ON checkpoints (job_id, created_unix_ns)",
    "INSERT INTO about VALUES ('format_version', 1)",
};

// Adds the runs, which are the history of jobs and stay when checkpoints are removed. The existing
// checkpoints become the first runs.
constexpr std::string_view kToSecondFormat[] = {
    R"(CREATE TABLE runs (
         id TEXT PRIMARY KEY, kind TEXT NOT NULL, job_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
         created_unix_ns INTEGER NOT NULL, error TEXT NOT NULL, duration_ns INTEGER NOT NULL,
         image_bytes INTEGER NOT NULL, conditions TEXT NOT NULL, warmth TEXT NOT NULL,
         stats_json TEXT NOT NULL, phases_json TEXT NOT NULL))",
    "CREATE INDEX runs_by_job ON runs (job_id, kind, created_unix_ns)",
    R"(INSERT INTO runs SELECT id, 'dump', job_id, id, created_unix_ns, error, duration_ns,
         image_bytes, '', '', stats_json, '' FROM checkpoints
         WHERE state IN ('complete', 'failed'))",
    "UPDATE about SET value = 2 WHERE key = 'format_version'",
};

// A history belongs to the name of its job, so that it survives the job. Adds how long processes
// stood still and were away, and the disk.
constexpr std::string_view kToThirdFormat[] = {
    "ALTER TABLE runs RENAME COLUMN job_id TO owner",
    R"(UPDATE runs SET owner = 'job:' || (SELECT name FROM jobs WHERE jobs.id = runs.owner)
         WHERE owner IN (SELECT id FROM jobs))",
    "ALTER TABLE runs ADD COLUMN stood_still_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN away_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN disk TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE checkpoints ADD COLUMN stood_still_ns INTEGER NOT NULL DEFAULT 0",
    "UPDATE about SET value = 3 WHERE key = 'format_version'",
};

// Adds what identifies a process besides its pid, which another process gets later.
constexpr std::string_view kToFourthFormat[] = {
    "ALTER TABLE checkpoints ADD COLUMN start_ticks INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE checkpoints ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''",
    "UPDATE about SET value = 4 WHERE key = 'format_version'",
};

// Adds whether kymod stopped during a dump, which was found in the error before.
constexpr std::string_view kToFifthFormat[] = {
    "ALTER TABLE checkpoints ADD COLUMN cut_short INTEGER NOT NULL DEFAULT 0",
    R"(UPDATE checkpoints SET cut_short = 1
         WHERE error LIKE 'kymod stopped during the dump%'
            OR error LIKE 'kymod stopped before the result of the dump was saved%')",
    "UPDATE about SET value = 5 WHERE key = 'format_version'",
};

// Adds requests that were refused, and the reason of every failure.
constexpr std::string_view kToSixthFormat[] = {
    "ALTER TABLE runs ADD COLUMN refused INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN failure TEXT NOT NULL DEFAULT ''",
    "UPDATE about SET value = 6 WHERE key = 'format_version'",
};

// Adds the explanation of where the time went.
constexpr std::string_view kToSeventhFormat[] = {
    "ALTER TABLE runs ADD COLUMN verdict TEXT NOT NULL DEFAULT ''",
    "UPDATE about SET value = 7 WHERE key = 'format_version'",
};

// Adds what a dump wrote before compression.
constexpr std::string_view kToEighthFormat[] = {
    "ALTER TABLE runs ADD COLUMN written_bytes INTEGER NOT NULL DEFAULT 0",
    "UPDATE about SET value = 8 WHERE key = 'format_version'",
};

// The statements that convert each format to the next. Format 0 is an empty file.
constexpr std::span<const std::string_view> kSteps[] = {
    kFirstFormat,   kToSecondFormat, kToThirdFormat,   kToFourthFormat,
    kToFifthFormat, kToSixthFormat,  kToSeventhFormat, kToEighthFormat};
static_assert(std::size(kSteps) == kFormatVersion);

Result<void> set_up(Database& db) {
  for (const std::string_view pragma :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    if (Result<void> set = db.run("set up", pragma); !set) {
      return set;
    }
  }
  return {};
}

Result<void> check_whole(Database& db, const std::string& path) {
  std::string damage;
  Result<void> checked = db.run("check the tables", "PRAGMA quick_check(1)", {},
                                [&](const Row& row) { damage = row.text(0); });
  if (checked && damage != "ok") {
    return Error{Code::data_loss, "the database " + path + " is damaged: " + damage};
  }
  return checked;
}

// The format of the file; 0 if it is empty.
Result<std::int64_t> format_of(Database& db, const std::string& path) {
  std::int64_t tables = 0;
  std::int64_t version = 0;
  if (Result<void> r = db.run("list the tables", "SELECT count(*) FROM sqlite_master", {},
                              [&](const Row& row) { tables = row.integer(0); });
      !r) {
    return r.error();
  }
  if (tables == 0) {
    return 0;
  }
  Result<void> read =
      db.run("read the version", "SELECT value FROM about WHERE key = 'format_version'", {},
             [&](const Row& row) { version = row.integer(0); });
  if (!read || version < 1) {
    return Error{Code::invalid_argument,
                 path + " is a SQLite database, but not one of kymod's; name another file"};
  }
  if (version > kFormatVersion) {
    return Error{Code::failed_precondition,
                 "the database " + path + " has format_version " + std::to_string(version) +
                     ", and this kymod reads up to " + std::to_string(kFormatVersion) +
                     "; use a newer kymod"};
  }
  return version;
}

}  // namespace

Result<void> prepare(Database& db, const std::string& path) {
  if (Result<void> ready = set_up(db); !ready) {
    return ready;
  }
  if (Result<void> whole = check_whole(db, path); !whole) {
    return whole;
  }
  return db.transaction([&]() -> Result<void> {
    const Result<std::int64_t> version = format_of(db, path);
    if (!version) {
      return version.error();
    }
    for (const auto& step : std::span(kSteps).subspan(static_cast<std::size_t>(*version))) {
      for (const std::string_view statement : step) {
        if (Result<void> r = db.run("bring the tables up to date", statement); !r) {
          return r;
        }
      }
    }
    return {};
  });
}

}  // namespace kymo::store
