#include "daemon/stored/gone.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "base/patience.h"

namespace kymo::daemon {
namespace {

// Set while a look waits for the disks, also after its caller has given up.
std::atomic_flag looking = ATOMIC_FLAG_INIT;

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
  if (looking.test_and_set()) return {};
  const std::shared_ptr<void> until_over(nullptr, [](void*) { looking.clear(); });
  auto missing = within(kDiskPatience, [directories = std::move(directories), until_over] {
    return missing_among(directories);
  });
  return missing ? *std::move(missing) : std::set<std::string>();
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
