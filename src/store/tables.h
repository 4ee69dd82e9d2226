#pragma once

#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "store/database.h"
#include "store/store.h"

// The tables of the database, a row at a time. Threads: one at a time, as the database. Errors:
// those of the database; not_found where there is no row to update or remove.
namespace kymo::store {

// There is no `what` of this id.
Error not_found(std::string_view what, std::string_view id);

Result<void> add(Database& db, const Job& job);
Result<void> add(Database& db, const Checkpoint& checkpoint);
// The thousand newest of a job and kind are kept.
Result<void> add(Database& db, const Run& run);
Result<void> update(Database& db, const Job& job);
Result<void> update(Database& db, const Checkpoint& checkpoint);
// With its runs.
Result<void> remove_job(Database& db, std::string_view id);
Result<void> remove_checkpoint(Database& db, std::string_view id);

// Oldest first.
Result<std::vector<Job>> read_jobs(Database& db);
Result<std::vector<Checkpoint>> read_checkpoints(Database& db);
// Of one job, or of all with an empty id.
Result<std::vector<Run>> read_runs(Database& db, std::string_view job_id, RunKind kind);

}  // namespace kymo::store
