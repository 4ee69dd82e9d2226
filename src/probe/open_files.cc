#include "probe/open_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace kymo::probe {
namespace {

namespace fs = std::filesystem;

// Whether a link in /proc/PID/fd says that its descriptor is open for writing (proc(5)).
bool is_writable(const fs::path& link) {
  std::error_code gone;
  const fs::perms mode = fs::symlink_status(link, gone).permissions();
  return !gone && (mode & fs::perms::owner_write) != fs::perms::none;
}

// Whether the process has the file open for writing. It compares the name in the link first, and
// uses the target only if the name is the same: the target may be on a network mount that hangs.
bool writes(const fs::path& process, const struct stat& file, const std::string& name) {
  std::error_code gone;
  for (fs::directory_iterator fd(process / "fd", gone), end; !gone && fd != end;
       fd.increment(gone)) {
    const fs::path target = fs::read_symlink(*fd, gone);
    struct stat seen {};
    if (!gone && target.filename() == name && is_writable(*fd) &&
        stat(fd->path().c_str(), &seen) == 0 && seen.st_dev == file.st_dev &&
        seen.st_ino == file.st_ino) {
      return true;
    }
    gone.clear();
  }
  return false;
}

}  // namespace

std::vector<pid_t> processes_writing(const std::string& path) {
  std::vector<pid_t> found;
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) {
    return found;
  }
  const std::string name = fs::path(path).filename();
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string process = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(process.data(), process.data() + process.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == process.data() + process.size() &&
        writes(entry->path(), file, name)) {
      found.push_back(pid);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace kymo::probe
