#include "daemon/database/tables.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace kymo::store {
namespace {

constexpr char kJobColumns[] =
    "id, name, command, pid, start_ticks, stdout_path, stderr_path, state, exit_status, "
    "created_unix_ns, boot_id";
constexpr char kCheckpointColumns[] =
    "id, job_id, pid, directory, created_unix_ns, state, error, image_bytes, duration_ns, "
    "stats_json, stood_still_ns, start_ticks, boot_id, cut_short";
constexpr char kRunColumns[] =
    "id, kind, owner, checkpoint_id, created_unix_ns, error, duration_ns, image_bytes, "
    "conditions, warmth, stats_json, phases_json, stood_still_ns, away_ns, disk, refused, failure, "
    "verdict, written_bytes";
// The most runs that are kept of each owner and kind. More would add nothing to a history.
constexpr std::int64_t kMaxRuns = 1000;
// The most owners whose runs are kept. Jobs and programs of other names come and go.
constexpr std::int64_t kMaxOwners = 1000;
// The same for refused requests, which somebody may repeat in a loop, and for owners that have nothing else.
constexpr std::int64_t kMaxRefusals = 10;
constexpr std::int64_t kMaxRefusedOwners = 100;

constexpr std::pair<JobState, std::string_view> kJobStates[] = {
    {JobState::running, "running"}, {JobState::dumped, "dumped"}, {JobState::exited, "exited"}};
constexpr std::pair<CheckpointState, std::string_view> kCheckpointStates[] = {
    {CheckpointState::started, "started"},
    {CheckpointState::complete, "complete"},
    {CheckpointState::deleting, "deleting"},
    {CheckpointState::unconfirmed, "unconfirmed"},
    {CheckpointState::failed, "failed"}};
constexpr std::pair<RunKind, std::string_view> kRunKinds[] = {{RunKind::dump, "dump"},
                                                              {RunKind::restore, "restore"}};

template <class State, std::size_t n>
std::string name_in(const std::pair<State, std::string_view> (&names)[n], State state) {
  for (const auto& [value, name] : names) {
    if (value == state) {
      return std::string(name);
    }
  }
  return {};
}

// The state with this name. An unknown name (of a later version) gives the last state of the list,
// which is the most cautious one.
template <class State, std::size_t n>
State state_in(const std::pair<State, std::string_view> (&names)[n], const std::string& text) {
  for (const auto& [value, name] : names) {
    if (name == text) {
      return value;
    }
  }
  return names[n - 1].first;
}

std::int64_t to_integer(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
std::uint64_t to_unsigned(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

std::string encode_command(const std::vector<std::string>& command) {
  // Arguments may be any bytes. Those that are no UTF-8 are replaced.
  return json_text(nlohmann::json(command));
}

std::vector<std::string> decode_command(const std::string& text) {
  std::vector<std::string> command;
  const nlohmann::json words = parse_json(text);
  if (words.is_array()) {
    for (const auto& word : words) {
      command.push_back(word.is_string() ? word.get<std::string>() : json_text(word));
    }
  }
  return command;
}

Job read_job(const Row& row) {
  Job job;
  job.id = row.text(0);
  job.name = row.text(1);
  job.command = decode_command(row.text(2));
  job.pid = static_cast<pid_t>(row.integer(3));
  job.start_ticks = to_unsigned(row.integer(4));
  job.stdout_path = row.text(5);
  job.stderr_path = row.text(6);
  job.state = state_in(kJobStates, row.text(7));
  if (!row.null(8)) {
    job.exit_status = static_cast<int>(row.integer(8));
  }
  job.created_unix_ns = row.integer(9);
  job.boot_id = row.text(10);
  return job;
}

Checkpoint read_checkpoint(const Row& row) {
  Checkpoint c;
  c.id = row.text(0);
  c.job_id = row.text(1);
  c.pid = static_cast<pid_t>(row.integer(2));
  c.directory = row.text(3);
  c.created_unix_ns = row.integer(4);
  c.state = state_in(kCheckpointStates, row.text(5));
  c.error = row.text(6);
  c.image_bytes = to_unsigned(row.integer(7));
  c.duration_ns = to_unsigned(row.integer(8));
  c.stats_json = row.text(9);
  c.stood_still_ns = to_unsigned(row.integer(10));
  c.start_ticks = to_unsigned(row.integer(11));
  c.boot_id = row.text(12);
  c.cut_short = row.integer(13) != 0;
  return c;
}

Run read_run(const Row& row) {
  Run run;
  run.id = row.text(0);
  run.kind = state_in(kRunKinds, row.text(1));
  run.owner = row.text(2);
  run.checkpoint_id = row.text(3);
  run.created_unix_ns = row.integer(4);
  run.error = row.text(5);
  run.duration_ns = to_unsigned(row.integer(6));
  run.image_bytes = to_unsigned(row.integer(7));
  run.conditions = row.text(8);
  run.warmth = row.text(9);
  run.stats_json = row.text(10);
  run.phases_json = row.text(11);
  run.stood_still_ns = to_unsigned(row.integer(12));
  run.away_ns = to_unsigned(row.integer(13));
  run.disk = row.text(14);
  run.refused = row.integer(15) != 0;
  run.failure = row.text(16);
  run.verdict = row.text(17);
  run.written_bytes = to_unsigned(row.integer(18));
  return run;
}

Value exit_value(const Job& job) {
  return job.exit_status ? Value(std::int64_t{*job.exit_status}) : Value(nullptr);
}

template <class Read>
auto read_rows(Database& db, std::string_view tried, const std::string& sql,
               const std::vector<Value>& values, Read read)
    -> Result<std::vector<decltype(read(std::declval<const Row&>()))>> {
  std::vector<decltype(read(std::declval<const Row&>()))> all;
  const Result<void> done =
      db.run(tried, sql, values, [&](const Row& row) { all.push_back(read(row)); });
  if (!done) return done.error();
  return all;
}

Result<void> changed_one(const Database& db, Result<void> done, std::string_view what,
                         std::string_view id) {
  return done && db.changed() == 0 ? Result<void>(not_found(what, id)) : done;
}

}  // namespace

std::string_view name_of(JobState state) {
  for (const auto& [value, name] : kJobStates) {
    if (value == state) {
      return name;
    }
  }
  return "unknown";
}

std::string_view name_of(CheckpointState state) {
  for (const auto& [value, name] : kCheckpointStates) {
    if (value == state) {
      return name;
    }
  }
  return "unknown";
}

std::string_view name_of(RunKind kind) {
  return kind == RunKind::restore ? "restore" : "dump";
}

Error not_found(std::string_view what, std::string_view id) {
  return Error{Code::not_found, "there is no " + std::string(what) + " '" + std::string(id) + "'"};
}

Result<void> add(Database& db, const Job& job) {
  return db.run(
      "add job '" + job.name + "'",
      std::string("INSERT INTO jobs (") + kJobColumns +
          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {job.id, job.name, encode_command(job.command), std::int64_t{job.pid},
       to_integer(job.start_ticks), job.stdout_path, job.stderr_path,
       name_in(kJobStates, job.state), exit_value(job), job.created_unix_ns, job.boot_id});
}

Result<void> add(Database& db, const Checkpoint& c) {
  return db.run("add checkpoint '" + c.id + "'",
                std::string("INSERT INTO checkpoints (") + kCheckpointColumns +
                    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                {c.id, c.job_id, std::int64_t{c.pid}, c.directory, c.created_unix_ns,
                 name_in(kCheckpointStates, c.state), c.error, to_integer(c.image_bytes),
                 to_integer(c.duration_ns), c.stats_json, to_integer(c.stood_still_ns),
                 to_integer(c.start_ticks), c.boot_id, to_integer(c.cut_short ? 1 : 0)});
}

Result<void> add(Database& db, const Run& run) {
  Result<void> added = db.run(
      "add run '" + run.id + "'",
      std::string("INSERT INTO runs (") + kRunColumns +
          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {run.id, name_in(kRunKinds, run.kind), run.owner, run.checkpoint_id, run.created_unix_ns,
       run.error, to_integer(run.duration_ns), to_integer(run.image_bytes), run.conditions,
       run.warmth, run.stats_json, run.phases_json, to_integer(run.stood_still_ns),
       to_integer(run.away_ns), run.disk, to_integer(run.refused ? 1 : 0), run.failure, run.verdict,
       to_integer(run.written_bytes)});
  if (!added) {
    return added;
  }
  const std::int64_t refused = run.refused ? 1 : 0;
  Result<void> bounded = db.run(
      "forget the oldest runs",
      "DELETE FROM runs WHERE rowid IN (SELECT rowid FROM runs WHERE owner = ?1 AND kind = ?2 AND"
      " refused = ?3 ORDER BY rowid DESC LIMIT -1 OFFSET ?4)",  // the clock may have been set
      {run.owner, name_in(kRunKinds, run.kind), refused, run.refused ? kMaxRefusals : kMaxRuns});
  std::int64_t runs_of_owner = 0;
  if (bounded) {
    bounded = db.run("count the runs", "SELECT count(*) FROM runs WHERE owner = ? AND refused = ?",
                     {run.owner, refused}, [&](const Row& row) { runs_of_owner = row.integer(0); });
  }
  if (!bounded || runs_of_owner > 1) return bounded;  // no owner has been added
  // min(refused) is 1 if all runs of an owner were refused.
  return db.run("forget the oldest histories",
                "DELETE FROM runs WHERE owner IN (SELECT owner FROM runs GROUP BY owner"
                " HAVING min(refused) = ?1 ORDER BY max(rowid) DESC LIMIT -1 OFFSET ?2)",
                {refused, run.refused ? kMaxRefusedOwners : kMaxOwners});
}

Result<void> update(Database& db, const Job& job) {
  return changed_one(
      db,
      db.run("update job '" + job.name + "'",
             "UPDATE jobs SET command = ?, pid = ?, start_ticks = ?, stdout_path = ?,"
             " stderr_path = ?, state = ?, exit_status = ?, boot_id = ? WHERE id = ?",
             {encode_command(job.command), std::int64_t{job.pid}, to_integer(job.start_ticks),
              job.stdout_path, job.stderr_path, name_in(kJobStates, job.state), exit_value(job),
              job.boot_id, job.id}),
      "job", job.id);
}

Result<void> update(Database& db, const Checkpoint& c) {
  return changed_one(
      db,
      db.run("update checkpoint '" + c.id + "'",
             "UPDATE checkpoints SET state = ?, error = ?, image_bytes = ?, duration_ns = ?,"
             " stats_json = ?, directory = ?, stood_still_ns = ?, cut_short = ? WHERE id = ?",
             {name_in(kCheckpointStates, c.state), c.error, to_integer(c.image_bytes),
              to_integer(c.duration_ns), c.stats_json, c.directory, to_integer(c.stood_still_ns),
              to_integer(c.cut_short ? 1 : 0), c.id}),
      "checkpoint", c.id);
}

Result<void> remove_job(Database& db, std::string_view id) {
  return changed_one(db, db.run("remove job", "DELETE FROM jobs WHERE id = ?", {std::string(id)}),
                     "job", id);
}

Result<void> remove_checkpoint(Database& db, std::string_view id) {
  return changed_one(
      db, db.run("remove checkpoint", "DELETE FROM checkpoints WHERE id = ?", {std::string(id)}),
      "checkpoint", id);
}

Result<std::vector<Job>> read_jobs(Database& db) {
  return read_rows(
      db, "list jobs",
      std::string("SELECT ") + kJobColumns + " FROM jobs ORDER BY created_unix_ns, rowid", {},
      read_job);
}

Result<std::vector<Checkpoint>> read_checkpoints(Database& db) {
  return read_rows(db, "list checkpoints",
                   std::string("SELECT ") + kCheckpointColumns +
                       " FROM checkpoints ORDER BY rowid",  // the clock may have been set back
                   {}, read_checkpoint);
}

Result<std::vector<Run>> read_runs(Database& db, std::string_view owner, RunKind kind,
                                   std::size_t newest) {
  return read_rows(db, "list runs",
                   std::string("SELECT ") + kRunColumns +
                       " FROM (SELECT *, rowid AS number FROM runs"
                       " WHERE (?1 = '' OR owner = ?1) AND kind = ?2"
                       " ORDER BY created_unix_ns DESC, rowid DESC LIMIT ?3)"
                       " ORDER BY created_unix_ns, number",
                   {std::string(owner), name_in(kRunKinds, kind),
                    newest == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(newest)},
                   read_run);
}

}  // namespace kymo::store
