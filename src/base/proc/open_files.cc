#include "base/proc/open_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/proc/process.h"

namespace kymo::probe {
namespace {

namespace fs = std::filesystem;

// Whether a link in /proc/PID/fd says that its descriptor is open for writing (proc(5)).
bool is_writable(const fs::path& link) {
  std::error_code gone;
  const fs::perms mode = fs::symlink_status(link, gone).permissions();
  return !gone && (mode & fs::perms::owner_write) != fs::perms::none;
}

// The value of a line of /proc/PID/fdinfo/N, such as "3" of "ino:\t3". Empty if there is none.
std::string value_in(const std::string& fdinfo, const std::string& name) {
  const std::string key = "\n" + name + ":\t";
  const std::size_t at = fdinfo.find(key);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size();
  return fdinfo.substr(begin, fdinfo.find('\n', begin) - begin);
}

// Where the kernel says an open file is. No file system is asked.
struct MountAndInode {
  std::string mount;  // the mount through which it was opened
  std::string inode;  // empty if the kernel does not give it (before Linux 5.14)
};

MountAndInode mount_and_inode_in(const fs::path& fdinfo) {
  const Result<std::string> text = read_file(fdinfo);
  if (!text) return {};
  return {value_in(*text, "mnt_id"), value_in(*text, "ino")};
}

// The file whose writers are looked for.
struct Wanted {
  std::string path;  // as the kernel writes it in links
  std::string name;
  MountAndInode place;
  struct stat info {};
};

// Whether the process has the file open for writing. It compares name and inode first, and asks the
// file system only if they are the same, because its disk may not answer. It does not ask if path
// and mount are the same, too. The path alone says little: in another mount namespace it is another
// file.
bool writes(const fs::path& process, const Wanted& wanted) {
  std::error_code gone;
  for (fs::directory_iterator fd(process / "fd", gone), end; !gone && fd != end;
       fd.increment(gone)) {
    const fs::path target = fs::read_symlink(*fd, gone);
    const bool named = !gone && target.filename() == wanted.name && is_writable(*fd);
    gone.clear();
    if (!named) continue;
    const MountAndInode seen = mount_and_inode_in(process / "fdinfo" / fd->path().filename());
    if (seen.inode != wanted.place.inode) continue;
    if (!seen.inode.empty() && seen.mount == wanted.place.mount && target == wanted.path) {
      return true;
    }
    struct stat info {};
    if (stat(fd->path().c_str(), &info) == 0 && info.st_dev == wanted.info.st_dev &&
        info.st_ino == wanted.info.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<pid_t> processes_writing(const std::string& path) {
  std::vector<pid_t> found;
  const FileDescriptor file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  Wanted wanted;
  if (!file.valid() || fstat(file.get(), &wanted.info) != 0) {
    return found;
  }
  const std::string own = std::to_string(file.get());
  std::error_code error;
  wanted.path = fs::read_symlink("/proc/self/fd/" + own, error);
  wanted.name = fs::path(path).filename();
  wanted.place = mount_and_inode_in("/proc/self/fdinfo/" + own);
  for (const pid_t pid : all_processes()) {
    if (writes("/proc/" + std::to_string(pid), wanted)) found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<OpenDescriptor> descriptors_with(const std::set<std::string>& links,
                                             const std::string& proc) {
  std::vector<OpenDescriptor> found;
  for (const pid_t pid : all_processes(proc)) {
    std::error_code gone;
    for (fs::directory_iterator fd(proc + "/" + std::to_string(pid) + "/fd", gone), end;
         !gone && fd != end; fd.increment(gone)) {
      std::string link = fs::read_symlink(*fd, gone);
      if (!gone && links.contains(link)) {
        found.push_back({pid, std::stoi(fd->path().filename()), std::move(link)});
      }
      gone.clear();
    }
  }
  return found;
}

}  // namespace kymo::probe
