#include "export/export_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace kymo::exporting {
namespace {

constexpr mode_t kMode = 0644;

// Where a link leads, so that the link stays and its target is replaced.
std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

Result<PendingFile> PendingFile::create(const std::string& asked) {
  const std::string path = behind_links(asked);
  const std::string temporary = path + ".new";
  FileDescriptor fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!fd.valid()) return system_error("cannot create " + temporary, errno);
  struct stat ours = {};
  struct stat named = {};
  const bool locked = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
  // The file may have got its name between opening and locking: then it is somebody's result.
  if (!locked || ::fstat(fd.get(), &ours) != 0 || ::lstat(temporary.c_str(), &named) != 0 ||
      ours.st_ino != named.st_ino) {
    return Error{Code::failed_precondition,
                 "cannot write " + temporary + ": another export is writing it"};
  }
  if (!S_ISREG(ours.st_mode)) {
    return Error{Code::failed_precondition, "cannot write " + temporary + ": it is no file"};
  }
  if (::ftruncate(fd.get(), 0) != 0) return system_error("cannot write " + temporary, errno);
  return PendingFile(path, std::move(fd));
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
    // A pipe or a device is written to; a folder refuses.
    file->direct_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file->direct_.valid()) return system_error("cannot write " + path, errno);
    file->fd_ = file->direct_.get();
  } else {
    Result<PendingFile> pending = PendingFile::create(path);
    if (!pending) return pending.error();
    file->pending_ = std::make_unique<PendingFile>(std::move(pending).value());
    file->fd_ = file->pending_->fd();
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

Result<void> ExportFile::commit() {
  flush();
  if (!written_) return written_;
  return pending_ ? pending_->publish() : Result<void>();
}

}  // namespace kymo::exporting
