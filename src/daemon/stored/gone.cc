#include "daemon/stored/gone.h"

#include <sys/stat.h>

#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/patience.h"

namespace kymo::daemon {
namespace {

struct Looks {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  // Of the look that asks the disks now: whether its caller has given up. Null: there is none.
  std::shared_ptr<bool> now;
};

Looks& all_looks() {
  static auto* const kOnly = new Looks;  // never destroyed: a look may outlive main()
  return *kOnly;
}

std::set<std::string> missing_among(const std::set<std::string>& directories) {
  std::set<std::string> missing;
  for (const std::string& directory : directories) {
    struct stat seen {};
    if (::stat(directory.c_str(), &seen) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
      missing.insert(directory);
    }
  }
  return missing;
}

std::set<std::string> missing_in_time(std::set<std::string> directories) {
  Looks& looks = all_looks();
  const auto given_up = std::make_shared<bool>(false);
  {
    std::unique_lock lock(looks.mutex);
    looks.changed.wait(lock, [&looks] { return looks.now == nullptr || *looks.now; });
    if (looks.now != nullptr) return {};  // a disk does not answer
    looks.now = given_up;
  }
  std::shared_ptr<void> until_over(nullptr, [&looks](void*) {
    const std::lock_guard lock(looks.mutex);
    looks.now = nullptr;
    looks.changed.notify_all();
  });
  auto missing = within(kDiskPatience, [directories = std::move(directories),
                                        until_over = std::move(until_over)]() mutable {
    std::set<std::string> found = missing_among(directories);
    until_over.reset();  // before the caller has the answer, and looks again
    return found;
  });
  if (missing) return *std::move(missing);
  const std::lock_guard lock(looks.mutex);
  *given_up = true;
  looks.changed.notify_all();
  return {};
}

}  // namespace

std::map<std::string, std::string> find_gone(const std::vector<store::Checkpoint>& checkpoints) {
  std::map<std::string, std::string> newest;  // the id of the newest checkpoint of each directory
  std::set<std::string> directories;
  for (const store::Checkpoint& checkpoint : checkpoints) {  // oldest first
    newest[checkpoint.directory] = checkpoint.id;
    if (checkpoint.state == store::CheckpointState::complete) {
      directories.insert(checkpoint.directory);
    }
  }
  const std::set<std::string> missing = missing_in_time(std::move(directories));
  std::map<std::string, std::string> gone;
  for (const store::Checkpoint& checkpoint : checkpoints) {
    if (checkpoint.state != store::CheckpointState::complete) continue;
    if (missing.contains(checkpoint.directory)) {
      gone[checkpoint.id] =
          "its directory is gone: somebody has moved or removed it, or its disk is not mounted";
    } else if (newest[checkpoint.directory] != checkpoint.id) {
      gone[checkpoint.id] = "its directory has been moved or removed, and holds checkpoint " +
                            newest[checkpoint.directory] + " now";
    }
  }
  return gone;
}

}  // namespace kymo::daemon
