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
// `started`: a dump that has begun; one that is found so after a restart was cut short.
enum class CheckpointState : std::uint8_t { started, complete, failed };

// The state's name, as it stands in the database.
std::string_view name_of(JobState state);
std::string_view name_of(CheckpointState state);

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
  std::string error;  // of a failed one
  std::uint64_t image_bytes = 0;
  std::uint64_t duration_ns = 0;
  std::string stats_json;  // CRIU's statistics, as the API shows them
};

// Jobs and checkpoints in one SQLite file.
//
// Threads:   every member from any thread, one at a time inside. Other processes may read the file.
// Ownership: owns its connection; the destructor closes it.
// Errors:    one line that names the file. Each change is a transaction: after an error nothing of
// it
//            is there. not_found: no such job or checkpoint; already_exists: an id or name is
//            taken; unavailable: another process has held the file locked for five seconds.
class Store {
 public:
  // Opens or creates the file; its folder must exist. A file that is damaged or no database is
  // moved aside to PATH.corrupt-N, never deleted, and a new one begun: see moved_aside(). One with
  // a newer format_version is refused, and left as it is.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Where open() put a damaged file and why, as a line for the log; empty when it had no need to.
  [[nodiscard]] const std::string& moved_aside() const;

  Result<void> add_job(const Job& job);
  // Replaces everything but id, name and creation time.
  Result<void> update_job(const Job& job);
  // By id or name.
  Result<Job> job(std::string_view id_or_name);
  // Oldest first.
  Result<std::vector<Job>> jobs();
  // Its checkpoints stay.
  Result<void> remove_job(std::string_view id);

  Result<void> add_checkpoint(const Checkpoint& checkpoint);
  // Replaces state, error, sizes and statistics. Where `job` is given it is updated in the same
  // transaction: a dumped job and its whole checkpoint appear together or not at all.
  Result<void> update_checkpoint(const Checkpoint& checkpoint, const Job* job = nullptr);
  Result<Checkpoint> checkpoint(std::string_view id);
  // Oldest first; of one job, or of all with an empty id.
  Result<std::vector<Checkpoint>> checkpoints(std::string_view job_id = {});
  Result<void> remove_checkpoint(std::string_view id);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::store
