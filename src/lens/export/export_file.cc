#include "lens/export/export_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/lock.h"

namespace kymo::exporting {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0644;

constexpr int kMaxLinks = 40;
constexpr int kMaxTries = 100;

// Follows symbolic links, so that a link stays and its target is replaced. Only links of this user
// and of root are followed: another user's link could point to any file of this user.
Result<std::string> behind_links(const std::string& asked) {
  std::string path = asked;
  struct stat there = {};
  for (int n = 0; ::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode); ++n) {
    if (there.st_uid != ::geteuid() && there.st_uid != 0) {
      return Error{Code::permission_denied,
                   "cannot write " + asked + ": " + path + " is a link that belongs to uid " +
                       std::to_string(there.st_uid) + ", and could lead anywhere; remove it"};
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return system_error("cannot follow the link " + path, error.value());
    if (n == kMaxLinks) return system_error("cannot write " + asked, ELOOP);
    path = (fs::path(path).parent_path() / target).string();
  }
  return path;
}

bool is_named(const struct stat& file, const std::string& name) {
  struct stat named = {};
  return ::lstat(name.c_str(), &named) == 0 && named.st_ino == file.st_ino &&
         named.st_dev == file.st_dev;
}

Error is_written(const std::string& temporary) {
  return Error{Code::failed_precondition,
               "cannot write " + temporary + ": another export is writing it"};
}

// Removes a file that a killed export, or another program, has left. It is locked before, so that
// no other export removes the new file that takes its place.
Result<void> remove_left_file(const std::string& temporary) {
  const FileDescriptor left(::open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
  struct stat file = {};
  const bool opened = left.valid() && ::fstat(left.get(), &file) == 0;
  if (opened && S_ISREG(file.st_mode)) {
    if (lock_within(left.get(), kLockPatience) == EWOULDBLOCK) return is_written(temporary);
    if (!is_named(file, temporary)) return {};  // removed or replaced: the caller tries again
  }
  if (::unlink(temporary.c_str()) == 0 || errno == ENOENT) return {};
  return system_error("cannot remove " + temporary, errno);
}

}  // namespace

Result<PendingFile> PendingFile::create(const std::string& asked) {
  const Result<std::string> path = behind_links(asked);
  if (!path) return path.error();
  struct stat wanted = {};
  if (::stat(asked.c_str(), &wanted) == 0 && !is_named(wanted, *path)) {
    return Error{Code::failed_precondition,
                 "cannot write " + asked + ": it is an open file that was deleted"};
  }
  const std::string temporary = *path + ".new";
  FileDescriptor fd;
  for (int tries = 0; !fd.valid(); ++tries) {
    // Always create a new file. An existing one may belong to another user, also after a rename.
    fd = FileDescriptor(
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (fd.valid()) break;
    if (errno != EEXIST || tries == kMaxTries) {
      return system_error("cannot create " + temporary, errno);
    }
    if (Result<void> made = remove_left_file(temporary); !made) return made.error();
  }
  struct stat ours = {};
  const bool locked = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
  // Before it was locked, another export may have taken the file for one that a killed export left.
  if (!locked || ::fstat(fd.get(), &ours) != 0 || !is_named(ours, temporary)) {
    return is_written(temporary);
  }
  return PendingFile(*path, std::move(fd));
}

PendingFile::~PendingFile() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

Result<void> PendingFile::publish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return system_error("cannot replace " + path_, errno);
  }
  fd_.reset();
  return {};
}

Result<std::unique_ptr<ExportFile>> ExportFile::create(const std::string& path) {
  std::unique_ptr<ExportFile> file(new ExportFile(path == "-" ? "standard output" : path));
  struct stat there = {};
  if (path == "-") {
    file->fd_ = STDOUT_FILENO;
  } else if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    // Write to a pipe or a device directly. For a folder, open() fails.
    if (const Result<std::string> target = behind_links(path); !target) return target.error();
    file->direct_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
    if (!file->direct_.valid()) return system_error("cannot write " + path, errno);
    file->fd_ = file->direct_.get();
  } else {
    Result<PendingFile> pending = PendingFile::create(path);
    if (!pending) return pending.error();
    file->pending_ = std::make_unique<PendingFile>(std::move(pending).value());
    file->fd_ = file->pending_->fd();
  }
  if (::isatty(file->fd_) == 1) {
    return Error{Code::invalid_argument,
                 "cannot write the export to a terminal, because names in a recording may hold "
                 "control codes: write it to a file or a pipe"};
  }
  return file;
}

void ExportFile::flush() {
  std::size_t written = 0;
  if (written_) {
    if (const int error = write_all(fd_, text_, &written); error != 0) {
      written_ = system_error("cannot write " + name_, error);
    }
  }
  text_.clear();
}

Result<void> ExportFile::finish() {
  flush();
  return written_;
}

}  // namespace kymo::exporting
