#pragma once

#include <string_view>
#include <vector>

#include "base/sqlite/database.h"
#include "daemon/database/store.h"
#include "kymo/result.h"

// Reads and writes rows of the database's tables.
//
// Threads: one at a time, as the database.
// Errors:  those of the database; not_found if there is no row to update or remove.
namespace kymo::store {

// The error that there is no `what` with this id.
Error not_found(std::string_view what, std::string_view id);

Result<void> add(Database& db, const Job& job);
Result<void> add(Database& db, const Checkpoint& checkpoint);
// Only the thousand newest of each owner and kind are kept, of the thousand owners that had a run last.
Result<void> add(Database& db, const Run& run);
Result<void> update(Database& db, const Job& job);
Result<void> update(Database& db, const Checkpoint& checkpoint);
Result<void> remove_job(Database& db, std::string_view id);
Result<void> remove_checkpoint(Database& db, std::string_view id);

// Oldest first.
Result<std::vector<Job>> read_jobs(Database& db);
Result<std::vector<Checkpoint>> read_checkpoints(Database& db);
// The runs of one owner, or of all owners if `owner` is empty, oldest first: the newest `newest` of
// them, or all if it is 0.
Result<std::vector<Run>> read_runs(Database& db, std::string_view owner, RunKind kind,
                                   std::size_t newest);

}  // namespace kymo::store
