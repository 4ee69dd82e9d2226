#include "daemon/stored/deletion.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/disk_wait.h"
#include "base/mounts.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "checkpoint/runtimes/shared/restore_lock.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "daemon/request/handover.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/cut_short.h"
#include "daemon/state/directory_claim.h"
#include "daemon/state/history_owner.h"
#include "daemon/stored/catalogue.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// A recording is closed within this time after the end of its request, unless the disk stalls: OwnThreadSink waits for up to 3 s.
constexpr std::chrono::milliseconds kClosedWithin{5000};

// The checkpoint stays in the store, because nothing else would list what is in its directory.
Error not_deleted(const CheckpointDir& dir, const store::Checkpoint& checkpoint, const Error& why) {
  return Error{why.code,
               "delete checkpoint " + checkpoint.id + ": nothing was removed from " + dir.path() +
                   ", because " + why.message +
                   ": look at it, remove it yourself, then delete the checkpoint again",
               why.errno_value};
}

// Whether the directory still holds this checkpoint, which its record shows. It may hold something else by now,
// because somebody has moved the checkpoint.
// `made_here`: kymod itself chose the directory, and nobody but kymod makes something there. Without a record that can
// be read, it holds what is left of this checkpoint.
// Errors: it cannot be told, for example because the record is damaged.
Result<bool> holds(const ForeignFiles& foreign, const CheckpointDir& dir,
                   const store::Checkpoint& checkpoint, bool made_here) {
  const Result<nlohmann::json> record = foreign.record(dir);
  if (record) {
    return record->value("created_unix_ns", nlohmann::json()) ==
           nlohmann::json(checkpoint.created_unix_ns);
  }
  if (made_here) return true;
  std::error_code error;
  const bool images = fs::exists(dir.images(), error) || fs::exists(dir.partial_images(), error);
  if (record.error().code == Code::not_found && !images) return false;
  return Error{record.error().code,
               "kymod cannot tell whether this checkpoint is there: " + record.error().message,
               record.error().errno_value};
}

// Whether the directory is to be deleted. False: only the store's entry is, because the directory is
// gone or holds something else.
// Errors: it must not be deleted: another user could lead the deletion to other files; those of holds().
Result<bool> to_be_deleted(const DeletionParts& parts, const CheckpointDir& dir,
                           const store::Checkpoint& checkpoint,
                           std::vector<std::string>& warnings) {
  std::error_code error;
  if (!fs::exists(dir.path(), error)) return false;
  if (const Result<void> own = check_own_path(dir.path()); !own) {
    return Error{own.error().code,
                 "other users could lead kymod to other files: " + own.error().message,
                 own.error().errno_value};
  }
  const bool again = checkpoint.state == store::CheckpointState::deleting;
  Result<bool> ours =
      holds(parts.foreign, dir, checkpoint, again || below_state_dir(parts.state_dir, dir.path()));
  if (ours && !*ours) {
    warnings.push_back(dir.path() + " no longer holds this checkpoint, so it was not deleted");
  }
  return ours;
}

// Removes a file or folder, and waits for files in it that are still open, such as the recording of
// a restore that has just ended. On NFS and FUSE, a file that is removed while it is open gets a
// hidden name until it is closed. The hidden file may disappear after the folder was read, and its
// removal then fails with "no such file".
std::error_code remove_with_open_files(const std::string& path) {
  const auto until = std::chrono::steady_clock::now() + kClosedWithin;
  for (;;) {
    std::error_code error;
    fs::remove_all(path, error);
    const bool closing =
        error == std::errc::directory_not_empty || error == std::errc::no_such_file_or_directory;
    if (!closing || std::chrono::steady_clock::now() > until) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Removes everything that a dump made. The images have been renamed before.
void remove_parts(const CheckpointDir& dir, std::vector<std::string>& warnings) {
  // A CRIU that was killed may have left the machine's cgroups mounted there.
  if (!detach_mounts(dir.work() + "/")) {
    warnings.push_back(dir.path() + " was not deleted: the mounts below it are not known");
    return;
  }
  for (const std::string& part :
       {dir.deleted_images(), dir.partial_images(), dir.work(), dir.recordings(), dir.record()}) {
    if (const std::error_code error = remove_with_open_files(part); error) {
      warnings.push_back("remove " + part + ": " + error.message());
    }
  }
  if (rmdir(dir.path().c_str()) == 0 || errno == ENOENT) return;
  const bool others = errno == ENOTEMPTY || errno == EEXIST;
  warnings.push_back(others ? dir.path() + " holds other files and was not deleted"
                            : system_error("remove " + dir.path(), errno).message);
}

Result<void> take_images_away(const CheckpointDir& dir) {
  if (std::rename(dir.images().c_str(), dir.deleted_images().c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  return system_error("delete the images " + dir.images(), errno);
}

Error in_use(const store::Checkpoint& checkpoint) {
  if (checkpoint.state == store::CheckpointState::unconfirmed) {
    return Error{Code::failed_precondition,
                 "delete checkpoint " + checkpoint.id +
                     ": kymod is finding out what its dump has left in " + checkpoint.directory +
                     ": wait until kymo checkpoints lists it as complete or failed"};
  }
  return Error{Code::failed_precondition, "delete checkpoint " + checkpoint.id +
                                              ": a dump or restore uses " + checkpoint.directory +
                                              ", or another deletion, here or by another kymod: "
                                              "wait for that to end"};
}

// Directories that no request uses, no restore which goes on without kymod, and no other kymod.
class DeletionClaim {
 public:
  DeletionClaim(Claims<std::string>& claims, const std::set<std::string>& paths)
      : request_(claims, paths),
        deletion_(claims, paths, DirectoryClaim::SilentDisk::wait, DirectoryClaim::Use::deletion),
        lock_(runtime::lock_images(real_directories(paths), runtime::ImageUse::change)) {}
  explicit operator bool() const { return request_ && deletion_ && lock_; }

 private:
  DirectoryClaim request_;
  DirectoryClaim deletion_;
  Result<FileDescriptor> lock_;
};

// The directory of a checkpoint, and those of its images: a restore of bare images claims only their own path.
DeletionClaim claim_directories(Claims<std::string>& claims,
                                const std::vector<store::Checkpoint>& checkpoints) {
  std::set<std::string> paths;  // several checkpoints may name one directory
  for (const store::Checkpoint& checkpoint : checkpoints) {
    const CheckpointDir dir(checkpoint.directory);
    paths.insert({dir.path(), dir.images(), dir.partial_images()});
  }
  return {claims, paths};
}
DeletionClaim claim_directory(Claims<std::string>& claims, const store::Checkpoint& checkpoint) {
  return claim_directories(claims, {checkpoint});
}

// A dump whose outcome is not known may have left something in its process, such as a frozen container, which only its
// checkpoint tells. So kymod looks before a deletion begins, and forgets no process that is still held.
// Errors: unavailable: a CRIU that cannot end holds the process.
Result<void> settle_open(const Parts& parts, const std::vector<store::Checkpoint>& checkpoints) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{1500};  // in all: less than Deleting::kPatience.before
  const auto until = steady_clock::now() + kLook;
  for (const store::Checkpoint& checkpoint : checkpoints) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
    if (!is_open(checkpoint) ||
        parts.unconfirmed.look_now(checkpoint.id, std::max(left, std::chrono::milliseconds(0)))) {
      continue;
    }
    if (const pid_t holder = runtime::held_by(checkpoint.pid); holder != 0) {
      return Error{Code::unavailable, "delete checkpoint " + checkpoint.id + ": process " +
                                          std::to_string(checkpoint.pid) + " is " +
                                          runtime::held_text(holder)};
    }
  }
  return {};
}

// Deletes a checkpoint whose directory is claimed. Errors: also that it must not be deleted.
Result<bool> delete_claimed(const DeletionParts& parts, const store::Checkpoint& checkpoint,
                            std::vector<std::string>& warnings) {
  const std::string memory = runtime::find_memory_images(checkpoint.id);
  const CheckpointDir dir(checkpoint.directory);
  Result<bool> there = to_be_deleted(parts, dir, checkpoint, warnings);
  if (!there) return not_deleted(dir, checkpoint, there.error());
  if (Result<void> may = parts.begins ? parts.begins() : Result<void>(); !may) return may.error();
  if (*there) {
    store::Checkpoint deleting = checkpoint;
    deleting.state = store::CheckpointState::deleting;
    if (Result<void> said = parts.store.announce(deleting); !said) {
      return Error{said.error().code, "delete checkpoint " + checkpoint.id +
                                          ": nothing was deleted: " + said.error().message};
    }
    if (Result<void> away = take_images_away(dir); !away) {
      static_cast<void>(parts.store.update_checkpoint(checkpoint));  // nothing was removed yet
      return away.error();
    }
    remove_parts(dir, warnings);
  }
  runtime::drop_memory_images(memory);
  runtime::drop_scratch(checkpoint.id);
  if (Result<void> said = parts.store.remove_checkpoint(checkpoint.id); !said) {
    return Error{said.error().code, "delete checkpoint " + checkpoint.id +
                                        ": its files are gone, but its entry is not removed: " +
                                        said.error().message + ": delete it again"};
  }
  return there;
}

// A deletion, and its caller, who does not wait for a disk that stalls.
struct Deleting {
  Deleting(const Parts& all, v1::DeleteRequest request)
      : parts(all), asked(std::move(request)), handover("delete " + asked.target(), kPatience) {}

  static constexpr Handover::Patience kPatience{.before = std::chrono::seconds(3),
                                                .in_runtime = std::chrono::seconds(10)};
  const Parts parts;
  const v1::DeleteRequest asked;
  Handover handover;
  std::mutex mutex;
  std::optional<Result<v1::DeleteResponse>> answer;  // guarded by mutex
};

Result<void> add_deleted(Deleting& all, const store::Checkpoint& checkpoint,
                         const DeletionClaim& claim, v1::DeleteResponse& out) {
  if (!claim) return in_use(checkpoint);
  std::vector<std::string> warnings;
  DeletionParts parts(all.parts);
  parts.begins = [&all] { return all.handover.enter_runtime(); };
  const Result<bool> deleted = delete_claimed(parts, checkpoint, warnings);
  for (const std::string& warning : warnings) out.add_warnings(warning);
  if (!deleted) return deleted.error();
  spdlog::info("{}: checkpoint {} in {}", *deleted ? "delete" : "forget", checkpoint.id,
               checkpoint.directory);
  if (!*deleted) {
    out.add_forgotten(checkpoint.id);
    return {};
  }
  out.add_checkpoints(checkpoint.id);
  out.set_freed_bytes(out.freed_bytes() + checkpoint.image_bytes);
  return {};
}

Result<v1::DeleteResponse> delete_failed(Deleting& deleting, const std::string& job_name) {
  const Parts& parts = deleting.parts;
  std::string job_id;
  if (!job_name.empty()) {
    const Result<store::Job> job = parts.jobs.find(job_name);
    if (!job) return job.error();
    job_id = job->id;
  }
  v1::DeleteResponse out;
  std::optional<Error> refused;
  for (const store::Checkpoint& checkpoint : parts.store.checkpoints(job_id)) {
    if (checkpoint.state != store::CheckpointState::failed) continue;
    const DeletionClaim claim = claim_directory(parts.claims, checkpoint);
    const Result<void> deleted = add_deleted(deleting, checkpoint, claim, out);
    if (deleted) continue;
    if (refused) out.add_warnings(refused->message);
    refused = deleted.error();
  }
  if (!refused) return out;
  if (out.checkpoints().empty() && out.forgotten().empty()) return *refused;
  out.add_warnings(refused->message);
  return out;
}

// Claims the job and all of its checkpoints before it deletes anything. So nothing is restored meanwhile, and nothing
// is deleted if a restore runs.
Result<v1::DeleteResponse> delete_job(Deleting& deleting, const std::string& id,
                                      bool with_checkpoints) {
  const Parts& parts = deleting.parts;
  const auto claim = parts.claims.claim("job:" + id);
  const Result<store::Job> found = parts.jobs.find(id);
  if (!found) return found.error();
  const store::Job& job = *found;
  const std::string tried = "delete job " + job.name + ": ";
  if (!claim) {
    return Error{Code::failed_precondition, tried + "it is being restored: wait for that to end"};
  }
  if (job.state == store::JobState::running) {
    return Error{Code::failed_precondition, tried + "it runs: end it first (kymo kill)"};
  }
  if (Result<void> ok = settle_open(parts, parts.store.checkpoints(job.id)); !ok) return ok.error();
  const std::vector<store::Checkpoint> all = parts.store.checkpoints(job.id);
  const auto whole = std::count_if(all.begin(), all.end(), [](const auto& checkpoint) {
    return checkpoint.state == store::CheckpointState::complete ||
           checkpoint.state == store::CheckpointState::unconfirmed;
  });
  if (whole != 0 && !with_checkpoints) {
    return Error{Code::failed_precondition,
                 tried + "it has " + std::to_string(whole) +
                     (whole == 1 ? " whole checkpoint: --all deletes it, too"
                                 : " whole checkpoints: --all deletes them, too")};
  }
  const DeletionClaim directories = claim_directories(parts.claims, all);
  if (!directories) {
    return Error{
        Code::failed_precondition,
        tried +
            "a dump or restore uses one of its checkpoints, or another deletion, here or by "
            "another kymod: wait for that to end"};
  }
  v1::DeleteResponse out;
  std::optional<Error> refused;
  for (const store::Checkpoint& checkpoint : all) {
    const Result<void> deleted = add_deleted(deleting, checkpoint, directories, out);
    if (!deleted && !refused) refused = deleted.error();
  }
  if (refused) {
    return Error{refused->code, tried + "it stays in the list: " + refused->message,
                 refused->errno_value};
  }
  // If the job had no checkpoint, nothing has called this yet.
  if (Result<void> may = deleting.handover.enter_runtime(); !may) return may.error();
  if (Result<void> ok = parts.jobs.remove(job); !ok) {
    return Error{ok.error().code, tried + "it stays in the list: " + ok.error().message};
  }
  // The output of a process, and what kymod notes of a container.
  std::error_code error;
  fs::remove_all(parts.config.state_dir + "/jobs/" + job.id, error);
  if (error) out.add_warnings("remove the folder of job " + job.name + ": " + error.message());
  parts.metrics.outcomes()->forget(owner_of_job(job.name));
  spdlog::info("delete: job {}", job.name);
  out.set_job(job.name);
  return out;
}

// On a thread that may wait for the disk.
Result<v1::DeleteResponse> delete_now(Deleting& deleting) {
  const Parts& parts = deleting.parts;
  const v1::DeleteRequest& request = deleting.asked;
  if (request.failed()) return delete_failed(deleting, request.target());
  if (request.target().empty()) {
    return Error{Code::invalid_argument, "delete: neither a checkpoint nor a job was given"};
  }
  parts.jobs.refresh();
  if (const Result<store::Job> job = parts.store.job(request.target()); job) {
    return delete_job(deleting, job->id, request.with_checkpoints());
  }
  const Result<store::Checkpoint> checkpoint = find_checkpoint(parts.store, request.target());
  if (!checkpoint) {
    if (checkpoint.error().code != Code::not_found) return checkpoint.error();
    return Error{Code::not_found, "delete: there is no checkpoint and no job " + request.target() +
                                      ": kymo checkpoints and kymo ps list them"};
  }
  if (Result<void> ok = settle_open(parts, {*checkpoint}); !ok) return ok.error();
  v1::DeleteResponse out;
  const DeletionClaim claim = claim_directory(parts.claims, *checkpoint);
  const Result<store::Checkpoint> now = parts.store.checkpoint(checkpoint->id);
  if (!now) return now.error();
  if (Result<void> ok = add_deleted(deleting, *now, claim, out); !ok) return ok.error();
  return out;
}

}  // namespace

bool below_state_dir(const std::string& state_dir, const std::string& directory) {
  const std::string folder = state_dir + "/checkpoints/";
  return directory.starts_with(folder) && directory.find('/', folder.size()) == std::string::npos &&
         directory.size() > folder.size();
}

Result<bool> delete_checkpoint(const DeletionParts& parts, const store::Checkpoint& checkpoint,
                               std::vector<std::string>& warnings) {
  const DeletionClaim claim = claim_directory(parts.claims, checkpoint);
  return claim ? delete_claimed(parts, checkpoint, warnings) : in_use(checkpoint);
}

Result<v1::DeleteResponse> delete_target(const Parts& parts, const v1::DeleteRequest& request) {
  const auto deleting = std::make_shared<Deleting>(parts, request);
  Result<void> started = parts.progress.run_thread([deleting] {
    Result<v1::DeleteResponse> done = Error{Code::internal, "delete: not done"};
    try {
      done = delete_now(*deleting);
    } catch (const std::exception& error) {
      done = Error{Code::internal, std::string("delete: ") + error.what()};
    }
    {
      const std::lock_guard lock(deleting->mutex);
      deleting->answer = std::move(done);
    }
    deleting->handover.ended();
  });
  if (!started) return started.error();
  const Handover::Stage stage = deleting->handover.wait(DiskWait(nullptr, monotonic_ns()));
  if (stage == Handover::Stage::ended) {
    const std::lock_guard lock(deleting->mutex);
    return *std::move(deleting->answer);
  }
  const std::string tried = deleting->handover.tried() + ": ";
  return Error{
      Code::unavailable,
      stage == Handover::Stage::before
          ? tried + "its disk does not answer, so nothing was deleted: try again when it does"
          : tried +
                "it has begun, but its disk is slow or does not answer: kymod goes on with "
                "that checkpoint, which kymo checkpoints lists as deleting until it is gone"};
}

Result<void> finish_deletions(const DeletionParts& parts) {
  for (const store::Checkpoint& checkpoint : parts.store.checkpoints()) {
    if (checkpoint.state != store::CheckpointState::deleting) continue;
    std::vector<std::string> warnings;
    const Result<bool> done = delete_checkpoint(parts, checkpoint, warnings);
    for (const std::string& warning : warnings) spdlog::warn("{}", warning);
    if (done) {
      spdlog::warn("checkpoint {}: kymod stopped while it was deleted; the rest was removed",
                   checkpoint.id);
    } else {
      spdlog::warn("checkpoint {}: kymod stopped while it was deleted: {}", checkpoint.id,
                   done.error().message);
    }
  }
  return {};
}

}  // namespace kymo::daemon
