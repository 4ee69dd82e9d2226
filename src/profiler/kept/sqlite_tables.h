#pragma once

#include <cstdint>
#include <string_view>

// The tables of SqliteStore, and how a file of an earlier version gets them.
namespace kymo::profiles {

inline constexpr std::int64_t kApplication = 0x6b796d70;  // "kymp": the file is one of these
inline constexpr std::int64_t kVersion = 3;

inline constexpr std::string_view kSetUp[] = {
    // So that the file gets smaller when old minutes are removed. It has no effect on one that has
    // tables.
    "PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL",
    // A power failure can lose the newest minutes, but does no damage.
    "PRAGMA synchronous = NORMAL", "PRAGMA journal_size_limit = 1048576",
    "PRAGMA cache_size = -16384",  // KiB: the indexes by hash
};

// A minute has more than one row if it was taken in parts, as when kymod was started again. `taken`: the
// place of the part in the order in which minutes were taken, counted from 1.
inline constexpr std::string_view kMinutes = R"(CREATE TABLE minutes (
  minute INTEGER, type INTEGER, begin_unix_ns INTEGER, covered_ns INTEGER NOT NULL,
  period_ns INTEGER NOT NULL, lost INTEGER NOT NULL, rows INTEGER NOT NULL,
  samples INTEGER NOT NULL, taken INTEGER NOT NULL,
  PRIMARY KEY (minute, type, begin_unix_ns)) WITHOUT ROWID)";
inline constexpr std::string_view kMinutesByTaken =
    "CREATE INDEX minutes_by_taken ON minutes (taken, minute)";

inline constexpr std::string_view kTables[] = {
    // `last`: no minute that was taken after this one (minutes.taken) has it.
    R"(CREATE TABLE functions (
         id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, body BLOB NOT NULL, last INTEGER NOT NULL))",
    "CREATE INDEX functions_by_hash ON functions (hash)",
    R"(CREATE TABLE stacks (
         id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, body BLOB NOT NULL, last INTEGER NOT NULL))",
    "CREATE INDEX stacks_by_hash ON stacks (hash)",
    "CREATE TABLE services (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    R"(CREATE TABLE rows (
         service INTEGER, type INTEGER, minute INTEGER, stack INTEGER, samples INTEGER NOT NULL,
         ns INTEGER NOT NULL, PRIMARY KEY (service, type, minute, stack)) WITHOUT ROWID)",
    R"(CREATE TABLE totals (
         service INTEGER, type INTEGER, minute INTEGER, samples INTEGER NOT NULL,
         ns INTEGER NOT NULL, PRIMARY KEY (service, type, minute)) WITHOUT ROWID)",
    kMinutes,
    kMinutesByTaken,
    "PRAGMA application_id = 1803119984",
    "PRAGMA user_version = 3",
};
static_assert(kApplication == 1803119984);

// Version 1 had one row for a minute and type.
inline constexpr std::string_view kFromVersion1[] = {
    "ALTER TABLE minutes ADD COLUMN begin_unix_ns INTEGER NOT NULL DEFAULT 0",
};
// Version 2 did not know in which order the minutes were taken, and had times in stacks.last and
// functions.last.
inline constexpr std::string_view kFromVersion2[] = {
    "ALTER TABLE minutes RENAME TO minutes_before",
    kMinutes,
    R"(INSERT INTO minutes
         SELECT minute, type, begin_unix_ns, covered_ns, period_ns, lost, rows, samples,
           dense_rank() OVER (ORDER BY minute) FROM minutes_before)",
    "DROP TABLE minutes_before",
    kMinutesByTaken,
    R"(UPDATE stacks SET last = coalesce((SELECT taken FROM minutes
         WHERE minute <= stacks.last ORDER BY minute DESC LIMIT 1), 0))",
    R"(UPDATE functions SET last = coalesce((SELECT taken FROM minutes
         WHERE minute <= functions.last ORDER BY minute DESC LIMIT 1), 0))",
    "PRAGMA user_version = 3",
};

}  // namespace kymo::profiles
