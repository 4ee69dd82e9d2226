#include "store/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "store/database.h"
#include "store/schema.h"
#include "store/unstored.h"

namespace kymo::store {
namespace {

constexpr char kJobColumns[] =
    "id, name, command, pid, start_ticks, stdout_path, stderr_path, state, exit_status, "
    "created_unix_ns";
constexpr char kCheckpointColumns[] =
    "id, job_id, pid, directory, created_unix_ns, state, error, image_bytes, duration_ns, "
    "stats_json";
constexpr char kRunColumns[] =
    "id, kind, job_id, checkpoint_id, created_unix_ns, error, duration_ns, image_bytes, "
    "conditions, warmth, stats_json, phases_json";
// Of a job and kind; a history of more runs says nothing more.
constexpr std::int64_t kMostRuns = 1000;

constexpr std::pair<JobState, std::string_view> kJobStates[] = {
    {JobState::running, "running"}, {JobState::dumped, "dumped"}, {JobState::exited, "exited"}};
constexpr std::pair<CheckpointState, std::string_view> kCheckpointStates[] = {
    {CheckpointState::started, "started"},
    {CheckpointState::complete, "complete"},
    {CheckpointState::deleting, "deleting"},
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

// An unknown name, of a later version, reads as the last and most cautious state.
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
  // Arguments are bytes: what is no UTF-8 is replaced rather than refused.
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
  return c;
}

Run read_run(const Row& row) {
  Run run;
  run.id = row.text(0);
  run.kind = state_in(kRunKinds, row.text(1));
  run.job_id = row.text(2);
  run.checkpoint_id = row.text(3);
  run.created_unix_ns = row.integer(4);
  run.error = row.text(5);
  run.duration_ns = to_unsigned(row.integer(6));
  run.image_bytes = to_unsigned(row.integer(7));
  run.conditions = row.text(8);
  run.warmth = row.text(9);
  run.stats_json = row.text(10);
  run.phases_json = row.text(11);
  return run;
}

Value exit_value(const Job& job) {
  return job.exit_status ? Value(std::int64_t{*job.exit_status}) : Value(nullptr);
}

Error not_found(std::string_view what, std::string_view id) {
  return Error{Code::not_found, "there is no " + std::string(what) + " '" + std::string(id) + "'"};
}

Result<std::unique_ptr<Database>> open_and_prepare(const std::string& path) {
  Result<std::unique_ptr<Database>> db = Database::open(path);
  if (!db) {
    return db;
  }
  if (Result<void> prepared = prepare(**db, path); !prepared) {
    return prepared.error();
  }
  return db;
}

// Renames the file, and its journal beside it, to the first free PATH.corrupt-N.
Result<std::string> move_aside(const std::string& path) {
  for (int n = 1; n < 10'000; ++n) {
    const std::string aside = path + ".corrupt-" + std::to_string(n);
    struct stat st {};
    if (lstat(aside.c_str(), &st) == 0) {
      continue;
    }
    if (std::rename(path.c_str(), aside.c_str()) != 0) {
      std::string tried = "cannot move the damaged database " + path;
      tried.append(" to ").append(aside);
      return system_error(tried, errno);
    }
    for (const char* ending : {"-wal", "-shm"}) {
      // Most often there is none.
      static_cast<void>(std::rename((path + ending).c_str(), (aside + ending).c_str()));
    }
    return aside;
  }
  return Error{Code::resource_exhausted, "cannot move the damaged database " + path +
                                             " aside: too many of them lie there; remove some"};
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

struct Store::State {
  std::mutex mutex;
  std::unique_ptr<Database> db;
  std::string moved_aside;
  Unstored unstored;

  // Precondition of each below: the mutex is held.
  Result<void> store_unstored() {
    if (unstored.count() == 0) return {};
    Result<void> stored = db->transaction([&]() -> Result<void> {
      const auto good = [](const Result<void>& done) {  // what was removed meanwhile stays so
        return done || done.error().code == Code::not_found;
      };
      for (const auto& [id, checkpoint] : unstored.checkpoints) {
        if (Result<void> done = update_checkpoint(checkpoint); !good(done)) return done;
      }
      for (const auto& [id, job] : unstored.jobs) {
        if (Result<void> done = update_job(job); !good(done)) return done;
      }
      for (const Run& run : unstored.runs) {
        if (Result<void> done = add_run(run); !done) return done;
      }
      return {};
    });
    if (stored) unstored = {};
    return stored;
  }

  // Changes what is stored, or keeps the change where its disk is full.
  template <class Change, class Keep>
  Result<void> change_or_keep(Change change, Keep keep) {
    Result<void> done = store_unstored();  // first, so that the newer is the last
    if (done) done = db->transaction(change);
    if (done || done.error().code != Code::resource_exhausted) return done;
    keep();
    return {};
  }

  Result<void> update_checkpoint(const Checkpoint& c) {
    Result<void> done =
        db->run("update checkpoint '" + c.id + "'",
                "UPDATE checkpoints SET state = ?, error = ?, image_bytes = ?, duration_ns = ?,"
                " stats_json = ?, directory = ? WHERE id = ?",
                {name_in(kCheckpointStates, c.state), c.error, to_integer(c.image_bytes),
                 to_integer(c.duration_ns), c.stats_json, c.directory, c.id});
    return done && db->changed() == 0 ? Result<void>(not_found("checkpoint", c.id)) : done;
  }

  Result<void> update_job(const Job& job) {
    Result<void> done = db->run(
        "update job '" + job.name + "'",
        "UPDATE jobs SET command = ?, pid = ?, start_ticks = ?, stdout_path = ?, stderr_path = ?,"
        " state = ?, exit_status = ? WHERE id = ?",
        {encode_command(job.command), std::int64_t{job.pid}, to_integer(job.start_ticks),
         job.stdout_path, job.stderr_path, name_in(kJobStates, job.state), exit_value(job),
         job.id});
    return done && db->changed() == 0 ? Result<void>(not_found("job", job.id)) : done;
  }

  Result<void> add_run(const Run& run) {
    Result<void> added = db->run(
        "add run '" + run.id + "'",
        std::string("INSERT INTO runs (") + kRunColumns +
            ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {run.id, name_in(kRunKinds, run.kind), run.job_id, run.checkpoint_id, run.created_unix_ns,
         run.error, to_integer(run.duration_ns), to_integer(run.image_bytes), run.conditions,
         run.warmth, run.stats_json, run.phases_json});
    if (!added) {
      return added;
    }
    return db->run("forget the oldest runs",
                   "DELETE FROM runs WHERE rowid IN (SELECT rowid FROM runs WHERE job_id = ?1 AND"
                   " kind = ?2 ORDER BY created_unix_ns DESC, rowid DESC LIMIT -1 OFFSET ?3)",
                   {run.job_id, name_in(kRunKinds, run.kind), kMostRuns});
  }

  Result<void> remove(std::string_view what, std::string_view sql, std::string_view id) {
    Result<void> done = db->run("remove " + std::string(what), sql, {std::string(id)});
    return done && db->changed() == 0 ? Result<void>(not_found(what, id)) : done;
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  auto state = std::make_unique<State>();
  Result<std::unique_ptr<Database>> db = open_and_prepare(path);
  if (!db && db.error().code == Code::data_loss) {
    const Result<std::string> aside = move_aside(path);
    if (!aside) {
      return aside.error();
    }
    state->moved_aside =
        db.error().message + "; it was moved to " + *aside + " and a new one begun";
    db = open_and_prepare(path);
  }
  if (!db) {
    return db.error();
  }
  state->db = std::move(*db);
  return std::unique_ptr<Store>(new Store(std::move(state)));
}

std::size_t Store::unstored() {
  const std::lock_guard lock(state_->mutex);
  static_cast<void>(state_->store_unstored().ok());
  return state_->unstored.count();
}

const std::string& Store::moved_aside() const {
  return state_->moved_aside;
}

Result<void> Store::add_job(const Job& job) {
  const std::lock_guard lock(state_->mutex);
  return state_->db->run(
      "add job '" + job.name + "'",
      std::string("INSERT INTO jobs (") + kJobColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {job.id, job.name, encode_command(job.command), std::int64_t{job.pid},
       to_integer(job.start_ticks), job.stdout_path, job.stderr_path,
       name_in(kJobStates, job.state), exit_value(job), job.created_unix_ns});
}

Result<void> Store::update_job(const Job& job) {
  const std::lock_guard lock(state_->mutex);
  return state_->change_or_keep([&] { return state_->update_job(job); },
                                [&] { state_->unstored.jobs[job.id] = job; });
}

Result<Job> Store::job(std::string_view id_or_name) {
  const std::lock_guard lock(state_->mutex);
  std::optional<Job> found;
  const std::string key(id_or_name);
  // An id goes before a name that reads the same.
  const Result<void> done =
      state_->db->run("find job '" + key + "'",
                      std::string("SELECT ") + kJobColumns +
                          " FROM jobs WHERE id = ?1 OR name = ?1 ORDER BY id = ?1 DESC LIMIT 1",
                      {key}, [&](const Row& row) { found = read_job(row); });
  if (!done) {
    return done.error();
  }
  if (!found) {
    return not_found("job", id_or_name);
  }
  state_->unstored.apply(*found);
  return *found;
}

Result<std::vector<Job>> Store::jobs() {
  const std::lock_guard lock(state_->mutex);
  std::vector<Job> all;
  const Result<void> done = state_->db->run(
      "list jobs",
      std::string("SELECT ") + kJobColumns + " FROM jobs ORDER BY created_unix_ns, rowid", {},
      [&](const Row& row) { all.push_back(read_job(row)); });
  for (Job& job : all) state_->unstored.apply(job);
  return done ? Result<std::vector<Job>>(std::move(all)) : done.error();
}

Result<void> Store::remove_job(std::string_view id) {
  const std::lock_guard lock(state_->mutex);
  Result<void> done = state_->db->transaction([&]() -> Result<void> {
    Result<void> removed = state_->remove("job", "DELETE FROM jobs WHERE id = ?", id);
    if (!removed) {
      return removed;
    }
    return state_->db->run("remove a job's runs", "DELETE FROM runs WHERE job_id = ?",
                           {std::string(id)});
  });
  if (done) {
    state_->unstored.jobs.erase(std::string(id));
    std::erase_if(state_->unstored.runs, [&](const Run& run) { return run.job_id == id; });
  }
  return done;
}

Result<void> Store::add_checkpoint(const Checkpoint& c) {
  const std::lock_guard lock(state_->mutex);
  return state_->db->run("add checkpoint '" + c.id + "'",
                         std::string("INSERT INTO checkpoints (") + kCheckpointColumns +
                             ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         {c.id, c.job_id, std::int64_t{c.pid}, c.directory, c.created_unix_ns,
                          name_in(kCheckpointStates, c.state), c.error, to_integer(c.image_bytes),
                          to_integer(c.duration_ns), c.stats_json});
}

Result<void> Store::update_checkpoint(const Checkpoint& c, const Job* job, const Run* run) {
  const std::lock_guard lock(state_->mutex);
  const auto change = [&]() -> Result<void> {
    Result<void> done = state_->update_checkpoint(c);
    if (done && job != nullptr) {
      done = state_->update_job(*job);
    }
    return done && run != nullptr ? state_->add_run(*run) : done;
  };
  return state_->change_or_keep(change, [&] {
    Unstored& unstored = state_->unstored;
    unstored.checkpoints[c.id] = c;
    if (job != nullptr) unstored.jobs[job->id] = *job;
    if (run != nullptr) unstored.runs.push_back(*run);
  });
}

Result<Checkpoint> Store::checkpoint(std::string_view id) {
  const std::lock_guard lock(state_->mutex);
  std::optional<Checkpoint> found;
  const Result<void> done = state_->db->run(
      "find a checkpoint",
      std::string("SELECT ") + kCheckpointColumns + " FROM checkpoints WHERE id = ?",
      {std::string(id)}, [&](const Row& row) { found = read_checkpoint(row); });
  if (!done) {
    return done.error();
  }
  if (!found) {
    return not_found("checkpoint", id);
  }
  state_->unstored.apply(*found);
  return *found;
}

Result<std::vector<Checkpoint>> Store::checkpoints(std::string_view job_id) {
  const std::lock_guard lock(state_->mutex);
  std::vector<Checkpoint> all;
  const Result<void> done = state_->db->run(
      "list checkpoints",
      std::string("SELECT ") + kCheckpointColumns +
          " FROM checkpoints WHERE ?1 = '' OR job_id = ?1 ORDER BY created_unix_ns, rowid",
      {std::string(job_id)}, [&](const Row& row) { all.push_back(read_checkpoint(row)); });
  for (Checkpoint& one : all) state_->unstored.apply(one);
  return done ? Result<std::vector<Checkpoint>>(std::move(all)) : done.error();
}

Result<void> Store::remove_checkpoint(std::string_view id) {
  const std::lock_guard lock(state_->mutex);
  Result<void> done = state_->remove("checkpoint", "DELETE FROM checkpoints WHERE id = ?", id);
  if (done) state_->unstored.checkpoints.erase(std::string(id));
  return done;
}

Result<void> Store::add_run(const Run& run) {
  const std::lock_guard lock(state_->mutex);
  return state_->change_or_keep([&] { return state_->add_run(run); },
                                [&] { state_->unstored.runs.push_back(run); });
}

Result<std::vector<Run>> Store::runs(std::string_view job_id, RunKind kind) {
  const std::lock_guard lock(state_->mutex);
  std::vector<Run> all;
  const Result<void> done = state_->db->run(
      "list runs",
      std::string("SELECT ") + kRunColumns +
          " FROM runs WHERE (?1 = '' OR job_id = ?1) AND kind = ?2 ORDER BY created_unix_ns, rowid",
      {std::string(job_id), name_in(kRunKinds, kind)},
      [&](const Row& row) { all.push_back(read_run(row)); });
  state_->unstored.apply(all, job_id, kind);
  return done ? Result<std::vector<Run>>(std::move(all)) : done.error();
}

}  // namespace kymo::store
