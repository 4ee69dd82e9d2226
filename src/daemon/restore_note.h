#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "criu/leftovers.h"
#include "daemon/jobs.h"
#include "kymo/result.h"
#include "store/store.h"

namespace kymo::daemon {

// What a restore that runs works on, in a file of the state directory for as long as it lives: a
// kymod that is killed meanwhile leaves the file, and the next one finds out what became of it.
//
// Threads: one at a time. Errors: of writing the file.
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

  // `tree`: the pids that it gives, the root first. `work_dir`: where CRIU's log goes. `job_id`:
  // empty where it is none's.
  static Result<RestoreNote> write(const std::string& state_dir, const std::string& directory,
                                   const std::vector<pid_t>& tree, const std::string& work_dir,
                                   const std::string& job_id);

 private:
  void remove();
  std::string path_;
};

// Ends what is left of a restore: criu::end_leftover_restore(), or another in tests.
using EndRestore =
    std::function<Result<void>(const std::string& log_path, const std::vector<pid_t>& tree)>;

// At the daemon's start: brings to an end what an earlier daemon's restores, cut short by its own
// end, have left. What had resumed is a running job; of the rest nothing stays, and the images can
// be restored again. A line in the log says which. Where that cannot be told, the note stays, and
// the next start looks again. Threads: one, before any request.
void settle_cut_short_restores(store::Store& store, Jobs& jobs, const std::string& state_dir,
                               const EndRestore& end_restore = criu::end_leftover_restore);

}  // namespace kymo::daemon
