#include "daemon/state/state_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/lock.h"
#include "base/own_folder.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// The target of the path, if it is a symbolic link of this process' user or of root. The link of
// another user is not followed, so that open_own_folder() refuses it.
std::string behind_own_link(const std::string& path) {
  struct stat link {};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return path;
  if (link.st_uid != ::geteuid() && link.st_uid != 0) return path;
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

// Takes away the rights of other users, also of the folder's group: the database has the command lines of all jobs,
// and whoever may open it may lock it.
Result<void> close_to_others(int folder, const std::string& path) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return system_error("look at " + path, errno);
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if ((info.st_mode & kOthers) == 0) return {};
  if (::fchmod(folder, info.st_mode & 07777U & ~kOthers) == 0) return {};
  return system_error("take away the rights of other users to the state directory " + path, errno);
}

}  // namespace

Result<FileDescriptor> take_state_dir(const std::string& path) {
  // If the path ended in a slash, open(2) would follow a link in spite of O_NOFOLLOW.
  std::string named = path;
  while (named.size() > 1 && named.ends_with('/')) named.pop_back();
  make_folders(fs::path(named).parent_path());
  if (::mkdir(named.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("make the state directory " + path, errno);
  }
  const Result<FileDescriptor> folder = open_own_folder(behind_own_link(named));
  if (!folder) {
    return Error{folder.error().code,
                 "cannot use the state directory " + folder.error().message +
                     ", or name another with --state-dir",
                 folder.error().errno_value};
  }
  if (Result<void> own = check_own_path(path); !own) {
    return Error{own.error().code, "cannot use the state directory " + path + ": " +
                                       own.error().message +
                                       ": choose one that only root can change, with --state-dir"};
  }
  if (Result<void> closed = close_to_others(folder->get(), path); !closed) return closed.error();
  FileDescriptor lock(
      ::openat(folder->get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid()) return system_error("write the lock in the state directory " + path, errno);
  const int locked = lock_within(lock.get(), kLockPatience);
  if (locked == 0) return lock;
  if (locked != EWOULDBLOCK) return system_error("lock the state directory " + path, locked);
  return Error{Code::already_exists, "the state directory " + path +
                                         " is in use: stop the other kymod, or name another with "
                                         "--state-dir"};
}

}  // namespace kymo::daemon
