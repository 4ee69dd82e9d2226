#include "daemon/database/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "base/own_thread.h"
#include "base/patience.h"
#include "base/sqlite/database.h"
#include "daemon/database/schema.h"
#include "daemon/database/tables.h"
#include "daemon/database/unstored.h"

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
    checkpoint.start_ticks = row->start_ticks;
    checkpoint.boot_id = row->boot_id;
    checkpoint.created_unix_ns = row->created_unix_ns;
    *row = std::move(checkpoint);
  }
}

// Whether a later attempt would fail as well: it is not the disk that refuses.
bool is_final(const Error& error) {
  return error.code == Code::not_found || error.code == Code::already_exists;
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
      // The error is ignored, because these files do not always exist.
      static_cast<void>(std::rename((path + ending).c_str(), (aside + ending).c_str()));
    }
    return aside;
  }
  return Error{Code::resource_exhausted, "cannot move the damaged database " + path +
                                             " aside: too many of them lie there; remove some"};
}

}  // namespace

// Two locks, so that a reader of jobs or checkpoints never waits for the disk. Lock order: `disk`
// before `memory`. Threads that wait for a disk which stalls may outlive the Store, so each owns
// the state.
struct Store::State {
  std::string path;
  std::mutex disk;
  // Guarded by disk:
  std::unique_ptr<Database> db;
  bool refused = false;  // the last attempt to store what is unstored failed
  std::string moved_aside;

  std::mutex memory;
  // Guarded by memory:
  std::vector<Job> jobs;                // all of them, with their unstored changes
  std::vector<Checkpoint> checkpoints;  // the same
  Unstored unstored;
  std::size_t on_way = 0;  // changes that were unstored and are being stored
  std::string trouble;     // why changes are not stored
  std::size_t left = 0;    // attempts that wait for the disk, without a caller that waits for them
  bool noted = false;      // there is something for the writer
  bool stopping = false;   // the writer ends
  bool writer_ended = false;
  std::condition_variable changed;

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
  // Closes the file at the end, which waits for the disk, too.
  void write() {
    std::unique_lock lock(memory);
    for (bool last = false; !last;) {
      changed.wait(lock, [this] { return noted || stopping; });
      noted = false;
      last = stopping;
      lock.unlock();
      {
        const std::lock_guard disk_lock(disk);
        static_cast<void>(store_unstored().ok());
        if (last) db = nullptr;
      }
      lock.lock();
    }
    writer_ended = true;
    changed.notify_all();
  }

  // Precondition: `disk` is held, and `memory` is not.
  Result<void> store_unstored() {
    Unstored taken;
    {
      const std::lock_guard lock(memory);
      taken = std::exchange(unstored, {});
      on_way = taken.count();
    }
    if (taken.count() == 0) return {};
    db->wait_for_locks(!refused);  // only the first change waits for a program that keeps its lock
    Result<void> stored = db->transaction([&]() -> Result<void> {
      // not_found: the row has been removed; already_exists: an attempt that was left stored the
      // run.
      const auto good = [](const Result<void>& done) { return done || is_final(done.error()); };
      for (const auto& [id, checkpoint] : taken.checkpoints) {
        if (Result<void> done = update(*db, checkpoint); !good(done)) return done;
      }
      for (const auto& [id, job] : taken.jobs) {
        if (Result<void> done = update(*db, job); !good(done)) return done;
      }
      for (const Run& run : taken.runs) {
        if (Result<void> done = add(*db, run); !good(done)) return done;
      }
      return {};
    });
    db->wait_for_locks(true);
    refused = !stored;
    const std::lock_guard lock(memory);
    on_way = 0;
    if (!stored) {
      unstored.put_back(std::move(taken));
      trouble = stored.error().message;
    }
    return stored;
  }

  [[nodiscard]] Error does_not_answer() const {
    return Error{Code::unavailable, "the disk of the database " + path + " does not answer"};
  }
};

// A piece of work with the disk, on a thread of its own.
struct Store::Attempt {
  // All are called with the disk's lock.
  std::function<Result<void>(State&)> work;
  std::function<void(State&)> apply;  // with the lock of the memory, after success
  // Called after a success if the caller has given up waiting. Null: the change then stays.
  std::function<void(State&)> undo = nullptr;
  // Guarded by the lock of the memory:
  std::condition_variable ended;
  std::optional<Result<void>> result;
  bool left = false;

  void run(State& state) {
    const std::lock_guard disk_lock(state.disk);
    std::unique_lock lock(state.memory);
    if (!left) {
      lock.unlock();
      Result<void> done = work(state);
      lock.lock();
      if (done && (!left || !undo)) apply(state);
      const bool undone = done && left && undo;
      result = std::move(done);
      if (undone) {
        lock.unlock();
        undo(state);
        lock.lock();
      }
    }
    if (left) --state.left;
    ended.notify_all();
  }
};

// Returns the result of the work; nothing if the disk does not answer within kDiskAnswers, or if an
// earlier attempt still waits for it.
std::optional<Result<void>> Store::attempt(std::shared_ptr<Attempt> attempt) {
  const std::shared_ptr<State> state = state_;
  std::unique_lock lock(state->memory);
  if (state->left > 0) return std::nullopt;
  lock.unlock();
  if (!on_own_thread([state, attempt] { attempt->run(*state); })) {
    attempt->run(*state);  // without a thread it waits as long as the disk does
  }
  lock.lock();
  if (attempt->ended.wait_for(lock, kDiskAnswers, [&] { return attempt->result.has_value(); })) {
    return attempt->result;
  }
  attempt->left = true;
  ++state->left;
  return std::nullopt;
}

// Reads or changes the file. Refuses that if the disk does not answer.
Result<void> Store::ask_disk(std::function<Result<void>(State&)> work,
                             std::function<void(State&)> apply, std::function<void(State&)> undo) {
  auto one = std::make_shared<Attempt>();
  one->work = std::move(work);
  one->apply = std::move(apply);
  one->undo = std::move(undo);
  std::optional<Result<void>> done = attempt(std::move(one));
  return done ? *std::move(done) : state_->does_not_answer();
}

// Stores a change. If the disk does not take it, keeps the change in memory only. `apply` makes the
// change in memory: with `unstored`, if the change must be kept there, and else with null. With
// `undo`, a change for which the disk does not answer in time is refused, and undone if the disk
// takes it later.
Result<void> Store::change_or_keep(std::function<Result<void>(Database&)> work,
                                   std::function<void(State&, Unstored* unstored)> apply,
                                   std::function<void(State&)> undo) {
  auto one = std::make_shared<Attempt>();
  one->work = [work = std::move(work)](State& state) {
    Result<void> done = state.store_unstored();  // first, so that the newer change is stored last
    if (done) done = state.db->transaction([&] { return work(*state.db); });
    state.refused = !done && !is_final(done.error());
    return done;
  };
  one->apply = [apply](State& state) { apply(state, nullptr); };
  const bool refuses = undo != nullptr;
  one->undo = [](State&) {};  // it is in memory already, with `unstored`
  if (refuses) one->undo = std::move(undo);
  std::optional<Result<void>> done = attempt(std::move(one));
  if (!done && refuses) return state_->does_not_answer();
  if (done && (*done || is_final(done->error()))) return *std::move(done);
  const std::lock_guard lock(state_->memory);
  state_->trouble = done ? done->error().message : state_->does_not_answer().message;
  apply(*state_, &state_->unstored);
  return {};
}

Store::Store(std::shared_ptr<State> state) : state_(std::move(state)) {
  writer_ = std::thread([of_thread = state_] { of_thread->write(); });
}

Store::~Store() {
  std::unique_lock lock(state_->memory);
  state_->stopping = true;
  state_->changed.notify_all();
  const auto ended = [this] { return state_->writer_ended; };
  static_cast<void>(join_or_leave(writer_, lock, state_->changed, ended, kDiskPatience));
}

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  auto state = std::make_shared<State>();
  state->path = path;
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
  return std::unique_ptr<Store>(new Store(std::move(state)));
}

std::size_t Store::unstored() {
  auto one = std::make_shared<Attempt>();
  one->work = [](State& state) { return state.store_unstored(); };
  one->apply = [](State&) {};
  const bool answered = attempt(std::move(one)).has_value();
  const std::lock_guard lock(state_->memory);
  if (!answered) state_->trouble = state_->does_not_answer().message;
  return state_->unstored.count() + state_->on_way;
}

std::string Store::trouble() const {
  const std::lock_guard lock(state_->memory);
  return state_->trouble;
}

const std::string& Store::moved_aside() const {
  return state_->moved_aside;
}

Result<void> Store::add_job(const Job& job) {
  return ask_disk(
      [job](State& state) { return add(*state.db, job); },
      [job](State& state) { insert(state.jobs, job); },
      [id = job.id](State& state) { static_cast<void>(store::remove_job(*state.db, id)); });
}

Result<void> Store::update_job(const Job& job) {
  return change_or_keep([job](Database& db) { return update(db, job); },
                        [job](State& state, Unstored* unstored) {
                          store::change(state.jobs, job);
                          if (unstored != nullptr) unstored->jobs[job.id] = job;
                        });
}

void Store::note_job(const Job& job) {
  const std::lock_guard lock(state_->memory);
  store::change(state_->jobs, job);
  state_->unstored.jobs[job.id] = job;
  state_->noted = true;
  state_->changed.notify_all();
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

Result<void> Store::remove_job(std::string_view id, bool also_late) {
  const std::string gone(id);
  const Result<Job> earlier = job(id);
  std::function<void(State&)> undo;
  if (earlier && !also_late) {
    undo = [earlier](State& state) { static_cast<void>(add(*state.db, *earlier)); };
  }
  return ask_disk([gone](State& state) { return store::remove_job(*state.db, gone); },
                  [gone](State& state) {
                    std::erase_if(state.jobs, [&](const Job& job) { return job.id == gone; });
                    state.unstored.jobs.erase(gone);
                  },
                  std::move(undo));
}

Result<void> Store::add_checkpoint(const Checkpoint& checkpoint) {
  return ask_disk([checkpoint](State& state) { return add(*state.db, checkpoint); },
                  [checkpoint](State& state) { state.checkpoints.push_back(checkpoint); },
                  [id = checkpoint.id](State& state) {
                    static_cast<void>(store::remove_checkpoint(*state.db, id));
                  });
}

Result<void> Store::update_checkpoint(const Checkpoint& c, const Job* job, const Run* run) {
  const auto its_job = job != nullptr ? std::optional(*job) : std::nullopt;
  const auto its_run = run != nullptr ? std::optional(*run) : std::nullopt;
  const auto work = [c, its_job, its_run](Database& db) {
    Result<void> done = update(db, c);
    if (done && its_job) done = update(db, *its_job);
    return done && its_run ? add(db, *its_run) : done;
  };
  return change_or_keep(work, [c, its_job, its_run](State& state, Unstored* unstored) {
    store::change(state.checkpoints, c);
    if (its_job) store::change(state.jobs, *its_job);
    if (unstored == nullptr) return;
    unstored->checkpoints[c.id] = c;
    if (its_job) unstored->jobs[its_job->id] = *its_job;
    if (its_run) unstored->runs.push_back(*its_run);
  });
}

Result<void> Store::announce(const Checkpoint& c) {
  const Result<Checkpoint> earlier = checkpoint(c.id);
  if (!earlier) return earlier.error();
  return change_or_keep(
      [c](Database& db) { return update(db, c); },
      [c](State& state, Unstored* unstored) {
        store::change(state.checkpoints, c);
        if (unstored != nullptr) unstored->checkpoints[c.id] = c;
      },
      [earlier](State& state) { static_cast<void>(update(*state.db, *earlier)); });
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
  const std::string gone(id);
  return ask_disk([gone](State& state) { return store::remove_checkpoint(*state.db, gone); },
                  [gone](State& state) {
                    std::erase_if(state.checkpoints,
                                  [&](const Checkpoint& one) { return one.id == gone; });
                    state.unstored.checkpoints.erase(gone);
                  });
}

Result<void> Store::add_run(const Run& run) {
  return change_or_keep([run](Database& db) { return add(db, run); },
                        [run](State&, Unstored* unstored) {
                          if (unstored != nullptr) unstored->runs.push_back(run);
                        });
}

void Store::note_refusal(const Run& run) {
  const std::lock_guard lock(state_->memory);
  state_->unstored.add_refusal(run);
  state_->noted = true;
  state_->changed.notify_all();
}

Result<std::vector<Run>> Store::runs(std::string_view owner, RunKind kind, std::size_t newest) {
  const auto all = std::make_shared<std::vector<Run>>();
  const std::string of(owner);
  Result<void> done = ask_disk(
      [all, of, kind, newest](State& state) -> Result<void> {
        Result<std::vector<Run>> read = read_runs(*state.db, of, kind, newest);
        if (!read) return read.error();
        *all = *std::move(read);
        return {};
      },
      [all, of, kind](State& state) { state.unstored.add_runs(*all, of, kind); });
  if (!done) return done.error();
  return std::move(*all);
}

}  // namespace kymo::store
