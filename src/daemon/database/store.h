#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kymo/result.h"

namespace kymo::store {

class Database;
struct Unstored;

enum class JobState : std::uint8_t { running, dumped, exited };
// `started`: the dump has begun; if kymod finds this state after a restart, the dump was cut short.
// `deleting`: the files of the checkpoint are being removed.
// `unconfirmed`: it is not known yet whether the images are whole, or whether the process runs on
// without them. kymod finds out as soon as that is possible.
enum class CheckpointState : std::uint8_t { started, complete, deleting, unconfirmed, failed };
enum class RunKind : std::uint8_t { dump, restore };

// The name of the value in the database.
std::string_view name_of(JobState state);
std::string_view name_of(CheckpointState state);
std::string_view name_of(RunKind kind);

struct Job {
  std::string id;    // unique
  std::string name;  // unique
  std::vector<std::string> command;
  // The process, which these three identify for good. A job of an earlier version has no boot_id.
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id;  // probe::boot_id() when it was started
  std::string stdout_path;
  std::string stderr_path;
  JobState state = JobState::running;
  std::optional<int> exit_status;  // as from waitpid(2); empty if it is not known
  std::int64_t created_unix_ns = 0;
};

struct Checkpoint {
  std::string id;      // unique
  std::string job_id;  // empty if the process is no job
  // The process, which these three identify for good. Of a checkpoint of an earlier version only the pid is known.
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id;  // probe::boot_id() at its dump
  std::string directory;
  std::int64_t created_unix_ns = 0;
  CheckpointState state = CheckpointState::started;
  std::string error;  // why it failed; of a complete one, what was not as expected
  std::uint64_t image_bytes = 0;
  std::uint64_t duration_ns = 0;
  std::string stats_json;  // CRIU's statistics, as the API shows them
  // How long the processes stood still, also if the dump failed. 0: unknown.
  std::uint64_t stood_still_ns = 0;
  // Whether kymod stopped during the dump, so that its request could not count it.
  bool cut_short = false;
};

// A dump or restore that has ended or was refused, for a history. It stays when the checkpoint or the job is removed.
struct Run {
  std::string id;  // unique
  RunKind kind = RunKind::dump;
  std::string owner;          // of the history, such as "job:web" (docs/diff.md)
  std::string checkpoint_id;  // empty: the images were no checkpoint of kymod
  std::int64_t created_unix_ns = 0;
  std::string error;     // empty: it succeeded
  std::string failure;   // the id of its reason (docs/errors.md), or empty
  std::string verdict;   // where its time went, in lines; empty: not known
  bool refused = false;  // nothing was begun
  std::uint64_t duration_ns = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t written_bytes = 0;   // of a dump: all images before compression; 0: not known
  std::string conditions;            // the options; only runs with the same conditions are compared
  std::string warmth;                // "warm", or "cold: " and why; empty: not known
  std::string stats_json;            // CRIU's statistics, as the API shows them
  std::string phases_json;           // where the time went: nanoseconds by name
  std::uint64_t stood_still_ns = 0;  // of a dump, as in Checkpoint
  std::uint64_t away_ns = 0;         // of a restore: since the dump; 0: unknown
  std::string disk;  // of a dump's directory (disk_of() in base/mounts.h); empty: unknown
};

// Jobs, checkpoints and runs in one SQLite file. All jobs and checkpoints are in memory as well, so
// that reading them never waits for the disk, even while the disk stalls.
//
// Threads:   every member from any thread; one at a time writes to the file. A thread of the store
//            writes what note_job() has noted. Other processes may read the file.
// Ownership: owns its connection; the destructor writes the noted changes and closes it. If the disk
//            does not answer, it leaves that to threads which end when the disk answers.
// Errors:    one line that names the file. Each change is a transaction: after an error nothing has
//            changed. not_found: no such job or checkpoint; already_exists: an id or name is taken;
//            unavailable: another process has held the file locked for two seconds;
//            unavailable, too: the disk has not answered for kDiskAnswers; what was refused is not done,
//            even if the disk answers later, unless the member says so. resource_exhausted: the disk is full.
//            update_job(), update_checkpoint() and add_run() succeed even if the disk is full,
//            fails or stalls, because they report what has already happened. The store keeps their
//            changes in memory, every read sees them, and they are stored as soon as the disk takes
//            them. See unstored() and trouble(). While there are such changes, further ones do not
//            wait for a process that has locked the file.
// Cost:      some kilobytes of memory for each job and checkpoint; a copy for each that is read. A
//            thread for each change.
class Store {
 public:
  // How long a call waits for the disk. While one still waits that was given up, others do not.
  static constexpr std::chrono::milliseconds kDiskAnswers{5000};

  // Opens or creates the file; its folder must exist. If the file is damaged or no database, the
  // store moves it to PATH.corrupt-N (it is never deleted) and begins a new one: see moved_aside().
  // A file with an older format_version is converted. A file with a newer one is refused and not
  // changed.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // A line for the log that says where open() moved a damaged file and why; empty if it moved none.
  [[nodiscard]] const std::string& moved_aside() const;

  // Tries to store the changes that are in memory only, and returns how many are left. They are
  // lost if the program ends before the disk takes them.
  std::size_t unstored();
  // Why changes are left: one line that names the file.
  [[nodiscard]] std::string trouble() const;

  Result<void> add_job(const Job& job);
  // Replaces everything but id, name and creation time.
  Result<void> update_job(const Job& job);
  // Like update_job(), but without waiting for the disk: every read sees the change at once, and it
  // is stored as soon as the disk answers. Use it for facts that can be found again after a crash.
  // Concurrent calls must not be about the same job.
  void note_job(const Job& job);
  // By id or name.
  Result<Job> job(std::string_view id_or_name);
  // Oldest first.
  std::vector<Job> jobs();
  // Removes the job. Its checkpoints and its history stay. `also_late`: if the disk does not answer in time, the job is
  // removed when it does, although the removal was refused.
  Result<void> remove_job(std::string_view id, bool also_late = false);

  Result<void> add_checkpoint(const Checkpoint& checkpoint);
  // Replaces state, error, sizes and statistics. If `job` is given, it is updated in the same
  // transaction, so that a dumped job and its complete checkpoint are stored together or not at
  // all. If `run` is given, it is added in the same transaction.
  Result<void> update_checkpoint(const Checkpoint& checkpoint, const Job* job = nullptr,
                                 const Run* run = nullptr);
  // The same for what is about to happen. If the disk does not answer, nothing changes, so do not begin it either.
  Result<void> announce(const Checkpoint& checkpoint);
  Result<Checkpoint> checkpoint(std::string_view id);
  // In the order in which they were added, whatever the clock said then: the last one is the newest. Those of one job,
  // or of all if `job_id` is empty.
  std::vector<Checkpoint> checkpoints(std::string_view job_id = {});
  // If the disk does not answer in time, it may be removed later, although the removal was refused.
  Result<void> remove_checkpoint(std::string_view id);

  // Only the thousand newest of each owner and kind are kept, of the thousand owners that had a run
  // last. Besides these, the ten newest that were refused are kept of each owner and kind, of a hundred owners that
  // have no other runs.
  Result<void> add_run(const Run& run);
  // Adds a refused run without waiting for the disk, as note_job(). So a refusal costs its caller nothing, and if the
  // disk stalls, at most the newest hundred wait in memory.
  void note_refusal(const Run& run);
  // Oldest first. Those of one owner, or of all if `owner` is empty. `newest`: at most this many;
  // 0: all.
  Result<std::vector<Run>> runs(std::string_view owner, RunKind kind, std::size_t newest = 0);

 private:
  struct State;
  struct Attempt;
  explicit Store(std::shared_ptr<State> state);
  std::optional<Result<void>> attempt(std::shared_ptr<Attempt> attempt);
  Result<void> ask_disk(std::function<Result<void>(State&)> work, std::function<void(State&)> apply,
                        std::function<void(State&)> undo = nullptr);
  Result<void> change_or_keep(std::function<Result<void>(Database&)> work,
                              std::function<void(State&, Unstored* unstored)> apply,
                              std::function<void(State&)> undo = nullptr);

  std::shared_ptr<State> state_;
  std::thread writer_;
};

}  // namespace kymo::store
