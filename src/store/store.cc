#include "store/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "store/database.h"
#include "store/schema.h"
#include "store/tables.h"
#include "store/unstored.h"

namespace kymo::store {
namespace {

// Inserts a row in the order of time, and after rows of the same time.
template <class Row>
void insert(std::vector<Row>& rows, const Row& row) {
  const auto newer = [](const Row& one, const Row& other) {
    return one.created_unix_ns < other.created_unix_ns;
  };
  rows.insert(std::upper_bound(rows.begin(), rows.end(), row, newer), row);
}

template <class Rows>
auto with_id(Rows& rows, std::string_view id) {
  return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.id == id; });
}

// Updates a row, except for the members that never change. A row that was removed is not added
// again.
void change(std::vector<Job>& rows, Job job) {
  if (const auto row = with_id(rows, job.id); row != rows.end()) {
    job.name = row->name;
    job.created_unix_ns = row->created_unix_ns;
    *row = std::move(job);
  }
}
void change(std::vector<Checkpoint>& rows, Checkpoint checkpoint) {
  if (const auto row = with_id(rows, checkpoint.id); row != rows.end()) {
    checkpoint.job_id = row->job_id;
    checkpoint.pid = row->pid;
    checkpoint.created_unix_ns = row->created_unix_ns;
    *row = std::move(checkpoint);
  }
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
      // These files do not always exist.
      static_cast<void>(std::rename((path + ending).c_str(), (aside + ending).c_str()));
    }
    return aside;
  }
  return Error{Code::resource_exhausted, "cannot move the damaged database " + path +
                                             " aside: too many of them lie there; remove some"};
}

}  // namespace

// Two locks, so that a reader of jobs or checkpoints never waits for the disk. Lock order: `disk`
// before `memory`.
struct Store::State {
  std::mutex disk;
  std::unique_ptr<Database> db;  // guarded by disk
  std::string moved_aside;

  std::mutex memory;
  // Guarded by memory:
  std::vector<Job> jobs;                // all of them, with their unstored changes
  std::vector<Checkpoint> checkpoints;  // the same
  Unstored unstored;

  bool noted = false;  // there is something for the writer; guarded by memory
  std::condition_variable_any wanted;
  std::jthread writer;  // the last member, because it uses all others

  Result<void> read_all() {
    Result<std::vector<Job>> all_jobs = read_jobs(*db);
    if (!all_jobs) return all_jobs.error();
    Result<std::vector<Checkpoint>> all_checkpoints = read_checkpoints(*db);
    if (!all_checkpoints) return all_checkpoints.error();
    jobs = *std::move(all_jobs);
    checkpoints = *std::move(all_checkpoints);
    return {};
  }

  // The writer's thread: stores what has been noted. If that fails, the next change tries again.
  void write(const std::stop_token& stop) {
    for (std::unique_lock lock(memory); wanted.wait(lock, stop, [this] { return noted; });) {
      noted = false;
      lock.unlock();
      {
        const std::lock_guard disk_lock(disk);
        static_cast<void>(store_unstored().ok());
      }
      lock.lock();
    }
  }

  // Precondition: `disk` is held, and `memory` is not.
  Result<void> store_unstored() {
    Unstored taken;
    {
      const std::lock_guard lock(memory);
      taken = std::exchange(unstored, {});
    }
    if (taken.count() == 0) return {};
    Result<void> stored = db->transaction([&]() -> Result<void> {
      const auto good = [](const Result<void>& done) {  // not_found: the row has been removed
        return done || done.error().code == Code::not_found;
      };
      for (const auto& [id, checkpoint] : taken.checkpoints) {
        if (Result<void> done = update(*db, checkpoint); !good(done)) return done;
      }
      for (const auto& [id, job] : taken.jobs) {
        if (Result<void> done = update(*db, job); !good(done)) return done;
      }
      for (const Run& run : taken.runs) {
        if (Result<void> done = add(*db, run); !done) return done;
      }
      return {};
    });
    if (!stored) {
      const std::lock_guard lock(memory);
      unstored.put_back(std::move(taken));
    }
    return stored;
  }

  // Stores a change. If the disk is full, keeps the change in memory only. Then calls `apply` to
  // make the change in memory: with `unstored`, if the change must be kept there, and else with
  // null.
  template <class Change, class Apply>
  Result<void> change_or_keep(Change change, Apply apply) {
    const std::lock_guard disk_lock(disk);
    Result<void> done = store_unstored();  // first, so that the newer change is stored last
    if (done) done = db->transaction(change);
    const bool no_room = !done && done.error().code == Code::resource_exhausted;
    if (!done && !no_room) return done;
    const std::lock_guard lock(memory);
    apply(no_room ? &unstored : nullptr);
    return {};
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}

Store::~Store() {
  state_->writer = {};
  static_cast<void>(unstored());
}

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
  if (Result<void> read = state->read_all(); !read) {
    return read.error();
  }
  State& of_thread = *state;
  state->writer =
      std::jthread([&of_thread](const std::stop_token& stop) { of_thread.write(stop); });
  return std::unique_ptr<Store>(new Store(std::move(state)));
}

std::size_t Store::unstored() {
  const std::lock_guard disk_lock(state_->disk);
  static_cast<void>(state_->store_unstored().ok());
  const std::lock_guard lock(state_->memory);
  return state_->unstored.count();
}

const std::string& Store::moved_aside() const {
  return state_->moved_aside;
}

Result<void> Store::add_job(const Job& job) {
  const std::lock_guard disk_lock(state_->disk);
  Result<void> added = add(*state_->db, job);
  const std::lock_guard lock(state_->memory);
  if (added) insert(state_->jobs, job);
  return added;
}

Result<void> Store::update_job(const Job& job) {
  return state_->change_or_keep([&] { return update(*state_->db, job); },
                                [&](Unstored* unstored) {
                                  change(state_->jobs, job);
                                  if (unstored != nullptr) unstored->jobs[job.id] = job;
                                });
}

void Store::note_job(const Job& job) {
  const std::lock_guard lock(state_->memory);
  change(state_->jobs, job);
  state_->unstored.jobs[job.id] = job;
  state_->noted = true;
  state_->wanted.notify_one();
}

Result<Job> Store::job(std::string_view id_or_name) {
  const std::lock_guard lock(state_->memory);
  const std::vector<Job>& jobs = state_->jobs;
  // If an id and a name are equal, the id wins.
  auto found = with_id(jobs, id_or_name);
  if (found == jobs.end()) {
    found = std::find_if(jobs.begin(), jobs.end(),
                         [&](const Job& job) { return job.name == id_or_name; });
  }
  return found == jobs.end() ? Result<Job>(not_found("job", id_or_name)) : Result<Job>(*found);
}

std::vector<Job> Store::jobs() {
  const std::lock_guard lock(state_->memory);
  return state_->jobs;
}

Result<void> Store::remove_job(std::string_view id) {
  const std::lock_guard disk_lock(state_->disk);
  Result<void> removed = store::remove_job(*state_->db, id);
  const std::lock_guard lock(state_->memory);
  if (removed) {
    std::erase_if(state_->jobs, [&](const Job& job) { return job.id == id; });
    state_->unstored.jobs.erase(std::string(id));
    std::erase_if(state_->unstored.runs, [&](const Run& run) { return run.job_id == id; });
  }
  return removed;
}

Result<void> Store::add_checkpoint(const Checkpoint& checkpoint) {
  const std::lock_guard disk_lock(state_->disk);
  Result<void> added = add(*state_->db, checkpoint);
  const std::lock_guard lock(state_->memory);
  if (added) insert(state_->checkpoints, checkpoint);
  return added;
}

Result<void> Store::update_checkpoint(const Checkpoint& c, const Job* job, const Run* run) {
  const auto store = [&]() -> Result<void> {
    Result<void> done = update(*state_->db, c);
    if (done && job != nullptr) {
      done = update(*state_->db, *job);
    }
    return done && run != nullptr ? add(*state_->db, *run) : done;
  };
  return state_->change_or_keep(store, [&](Unstored* unstored) {
    change(state_->checkpoints, c);
    if (job != nullptr) change(state_->jobs, *job);
    if (unstored == nullptr) return;
    unstored->checkpoints[c.id] = c;
    if (job != nullptr) unstored->jobs[job->id] = *job;
    if (run != nullptr) unstored->runs.push_back(*run);
  });
}

Result<Checkpoint> Store::checkpoint(std::string_view id) {
  const std::lock_guard lock(state_->memory);
  const auto found = with_id(state_->checkpoints, id);
  return found == state_->checkpoints.end() ? Result<Checkpoint>(not_found("checkpoint", id))
                                            : Result<Checkpoint>(*found);
}

std::vector<Checkpoint> Store::checkpoints(std::string_view job_id) {
  const std::lock_guard lock(state_->memory);
  std::vector<Checkpoint> found;
  std::copy_if(state_->checkpoints.begin(), state_->checkpoints.end(), std::back_inserter(found),
               [&](const Checkpoint& one) { return job_id.empty() || one.job_id == job_id; });
  return found;
}

Result<void> Store::remove_checkpoint(std::string_view id) {
  const std::lock_guard disk_lock(state_->disk);
  Result<void> removed = store::remove_checkpoint(*state_->db, id);
  const std::lock_guard lock(state_->memory);
  if (removed) {
    std::erase_if(state_->checkpoints, [&](const Checkpoint& one) { return one.id == id; });
    state_->unstored.checkpoints.erase(std::string(id));
  }
  return removed;
}

Result<void> Store::add_run(const Run& run) {
  return state_->change_or_keep([&] { return add(*state_->db, run); },
                                [&](Unstored* unstored) {
                                  if (unstored != nullptr) unstored->runs.push_back(run);
                                });
}

Result<std::vector<Run>> Store::runs(std::string_view job_id, RunKind kind) {
  const std::lock_guard disk_lock(state_->disk);
  Result<std::vector<Run>> all = read_runs(*state_->db, job_id, kind);
  const std::lock_guard lock(state_->memory);
  if (all) state_->unstored.add_runs(*all, job_id, kind);
  return all;
}

}  // namespace kymo::store
