#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/claims.h"
#include "checkpoint/criu/repair/leftovers.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/database/store.h"
#include "daemon/recording/metrics.h"
#include "daemon/state/directory_claim.h"
#include "daemon/state/jobs.h"
#include "daemon/state/restore_fate.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A file in the state directory that describes a running restore. The destructor removes it. If
// kymod is killed during the restore, the file stays, and the next kymod finds out from it how the
// restore ended.
//
// Threads: one at a time. The destructor waits at most kDiskPatience for the disk, which then removes the file when
//          it answers.
// Errors:  those of writing the file; unavailable: its disk has not answered for Store::kDiskAnswers. No file
//          stays then.
class RestoreNote {
 public:
  RestoreNote() = default;
  RestoreNote(RestoreNote&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  RestoreNote& operator=(RestoreNote&& other) noexcept {
    remove();
    path_ = std::exchange(other.path_, {});
    return *this;
  }
  RestoreNote(const RestoreNote&) = delete;
  RestoreNote& operator=(const RestoreNote&) = delete;
  ~RestoreNote() { remove(); }

  struct About {
    std::string directory;    // of the checkpoint
    std::vector<pid_t> tree;  // the pids of the restored processes, the root first
    std::string work_dir;     // of CRIU's log
    std::string job_id;       // empty: no job is restored
    // For the history of the job:
    std::int64_t created_unix_ns = 0;  // when the request began
    std::string checkpoint_id{};       // empty: the images are no checkpoint of kymod
    std::uint64_t image_bytes = 0;     // 0: not known
    // Only of a container:
    runtime::Kind kind{};
    std::string images{};
    std::string container{};  // its id
    std::string bundle{};
    bool gives_rights = false;  // to read the images, to other users (runtime/readable_images.h)
  };
  // The run of the history that the restore becomes.
  static std::string run_id(std::int64_t created_unix_ns, const std::string& job_id) {
    return "r" + std::to_string(created_unix_ns) + "-" + job_id;
  }
  static Result<RestoreNote> write(const std::string& state_dir, const About& about);
  // Leaves the note to the next kymod, because the outcome is not stored yet.
  void keep() { path_.clear(); }

 private:
  void remove();
  std::string path_;
};

// Ends what is left of a restore: criu::end_leftover_restore(), or a replacement in tests.
using EndRestore =
    std::function<Result<void>(const std::string& log_path, const std::vector<pid_t>& tree)>;

// Removes what is left of a container's restore: Runtime::settle_restore() of the given kind.
using SettleRestore = std::function<Result<bool>(
    runtime::Kind kind, const runtime::RestoreSpec& spec, std::int64_t began_unix_ns)>;

// A restore that was cut short, and whose outcome is not known yet. The programs of podman, containerd and Docker may go
// on without kymod, and for a moment none of them need be there to see.
struct OpenRestore {
  std::string note;     // the path of its file
  int quiet_looks = 0;  // at which nothing restored the container
  std::string said{};   // the last trouble in the log
  // As long as it may go on, nobody deletes its images, and its job says so.
  DirectoryClaim images{};
  FileDescriptor lock{};  // the same for other kymods
  Jobs::Hold job{};
};
// Cleans up at the daemon's start after restores during which an earlier kymod ended. If the
// restored process runs, it becomes a running job. Otherwise the rest of the restore is removed,
// and the images can be restored again. The log says which. What its request could not do is done, too: the restore is
// added to the history of its job, and counted. restore_fate.h has the rule. Returns the restores to look at again.
// Threads: one, before any request.
std::vector<OpenRestore> settle_cut_short_restores(
    store::Store& store, Jobs& jobs, Metrics& metrics, Claims<std::string>& claims,
    const std::string& state_dir, const SettleRestore& settle_container,
    const EndRestore& end_restore = criu::end_leftover_restore);

// Looks at these restores again, and leaves those in `open` whose outcome is still not known.
// Threads: one at a time. Waits for the disk of the state directory.
void settle_open_restores(store::Store& store, Jobs& jobs, Metrics& metrics,
                          std::vector<OpenRestore>& open, const SettleRestore& settle_container,
                          const EndRestore& end_restore = criu::end_leftover_restore);

}  // namespace kymo::daemon
