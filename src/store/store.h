#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::store {

enum class JobState : std::uint8_t { running, dumped, exited };
// `started`: a dump that has begun; one that is found so after a restart was cut short. `deleting`:
// what it had is being removed.
enum class CheckpointState : std::uint8_t { started, complete, deleting, failed };
enum class RunKind : std::uint8_t { dump, restore };

// The name, as it stands in the database.
std::string_view name_of(JobState state);
std::string_view name_of(CheckpointState state);
std::string_view name_of(RunKind kind);

struct Job {
  std::string id;    // unique
  std::string name;  // unique
  std::vector<std::string> command;
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string stdout_path;
  std::string stderr_path;
  JobState state = JobState::running;
  std::optional<int> exit_status;  // as from waitpid(2), where it is known
  std::int64_t created_unix_ns = 0;
};

struct Checkpoint {
  std::string id;      // unique
  std::string job_id;  // empty: of a process that is no job
  pid_t pid = 0;
  std::string directory;
  std::int64_t created_unix_ns = 0;
  CheckpointState state = CheckpointState::started;
  std::string error;  // why it failed, or what was odd about a complete one
  std::uint64_t image_bytes = 0;
  std::uint64_t duration_ns = 0;
  std::string stats_json;  // CRIU's statistics, as the API shows them
};

// A dump or restore that has ended, for its job's history; it outlives the checkpoint.
struct Run {
  std::string id;  // unique
  RunKind kind = RunKind::dump;
  std::string job_id;         // or what else has a history (docs/history.md)
  std::string checkpoint_id;  // empty: of images that are no checkpoint of ours
  std::int64_t created_unix_ns = 0;
  std::string error;  // empty: it succeeded
  std::uint64_t duration_ns = 0;
  std::uint64_t image_bytes = 0;
  std::string conditions;   // what it was told; runs under the same conditions are compared
  std::string warmth;       // "warm", or "cold: " and why; empty: not known
  std::string stats_json;   // CRIU's statistics, as the API shows them
  std::string phases_json;  // where the time went: nanoseconds by name
};

// Jobs, checkpoints and runs in one SQLite file. All jobs and checkpoints are in memory as well:
// reading those never waits for the disk, even while it stalls.
//
// Threads:   every member from any thread; one at a time writes to the file. A thread of the
//            store's own writes what is noted. Other processes may read the file.
// Ownership: owns its connection; the destructor writes what was noted and closes it.
// Errors:    one line that names the file. Each change is a transaction: after an error nothing of
//            it is there. not_found: no such job or checkpoint; already_exists: an id or name is
//            taken; unavailable: another process has held the file locked for five seconds;
//            resource_exhausted: its disk is full. An update is no error then, since what it tells
//            of has happened: it is kept in memory, seen by every read, and stored as soon as
//            there is space. See unstored().
// Cost:      memory for each job and checkpoint, some kilobytes; a copy for each that is read.
class Store {
 public:
  // Opens or creates the file; its folder must exist. A file that is damaged or no database is
  // moved aside to PATH.corrupt-N, never deleted, and a new one begun: see moved_aside(). One with
  // an older format_version is brought up to date; one with a newer is refused, and left as it is.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Where open() put a damaged file and why, as a line for the log; empty when it had no need to.
  [[nodiscard]] const std::string& moved_aside() const;

  // How many changes are in memory alone, for want of space; they are lost where the program ends
  // first. Tries to store them, and so waits for the disk.
  std::size_t unstored();

  Result<void> add_job(const Job& job);
  // Replaces everything but id, name and creation time.
  Result<void> update_job(const Job& job);
  // The same, without waiting for the disk: every read sees it at once, and it is stored as soon as
  // the disk answers. For what can be seen again after a crash. Of one job at a time.
  void note_job(const Job& job);
  // By id or name.
  Result<Job> job(std::string_view id_or_name);
  // Oldest first.
  std::vector<Job> jobs();
  // Its runs go with it; its checkpoints stay.
  Result<void> remove_job(std::string_view id);

  Result<void> add_checkpoint(const Checkpoint& checkpoint);
  // Replaces state, error, sizes and statistics. Where `job` is given it is updated in the same
  // transaction: a dumped job and its whole checkpoint appear together or not at all. Where `run`
  // is given it is added, in the same one.
  Result<void> update_checkpoint(const Checkpoint& checkpoint, const Job* job = nullptr,
                                 const Run* run = nullptr);
  Result<Checkpoint> checkpoint(std::string_view id);
  // Oldest first; of one job, or of all with an empty id.
  std::vector<Checkpoint> checkpoints(std::string_view job_id = {});
  Result<void> remove_checkpoint(std::string_view id);

  // The thousand newest of a job and kind are kept.
  Result<void> add_run(const Run& run);
  // Oldest first; of one job, or of all with an empty id.
  Result<std::vector<Run>> runs(std::string_view job_id, RunKind kind);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::store
