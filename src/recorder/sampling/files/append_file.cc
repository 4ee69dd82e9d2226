#include "recorder/sampling/files/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/absolute_path.h"

namespace kymo {

AppendFile::AppendFile(FileDescriptor fd, const std::string& path)
    : path_(absolute_path(path)), fd_(std::move(fd)) {
  struct stat status {};
  counts_names_ = ::fstat(fd_.get(), &status) == 0 && status.st_nlink != 0;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    fd_ = std::move(other.fd_);
    taken_ = other.taken_;
    device_ = other.device_;
    inode_ = other.inode_;
    size_ = other.size_;
    torn_ = other.torn_;
    counts_names_ = other.counts_names_;
  }
  return *this;
}

void AppendFile::close() {
  if (has_descriptor()) {
    fd_.reset();
  }
  taken_ = false;
}

// Whether the file can be reached: false after close(), and if `taken_`.
bool AppendFile::has_descriptor() const {
  if (!fd_.valid() && !taken_) {
    return false;
  }
  struct stat own {};
  struct stat named {};
  if (!taken_) {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY &&
        ::fstat(fd_.get(), &own) == 0) {
      if (own.st_dev == device_ && own.st_ino == inode_) {
        return true;
      }
      // A process that was restored on another disk has the file of this name open.
      if (::stat(path_.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
          own.st_ino == named.st_ino) {
        device_ = own.st_dev;
        inode_ = own.st_ino;
        return true;
      }
    }
    static_cast<void>(fd_.release());
    taken_ = true;
  }
  FileDescriptor again(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | kOpenForeign));
  if (!again.valid() || ::fstat(again.get(), &own) != 0 || own.st_dev != device_ ||
      own.st_ino != inode_) {
    return false;
  }
  fd_ = std::move(again);
  taken_ = false;
  return true;
}

Result<AppendFile> AppendFile::create(const std::string& path) {
  Result<FileDescriptor> fd = create_append_only(path);
  if (!fd) {
    return fd.error();
  }
  return AppendFile(*std::move(fd), path);
}

int AppendFile::append(std::string_view text) {
  if (torn_) {
    cut_back_to(size_);
    if (torn_) {
      return EIO;
    }
  }
  if (!has_descriptor()) {
    return EBADF;
  }
  std::size_t written = 0;
  const int error = write_all(fd_.get(), text, &written);
  if (error == 0) {
    size_ += text.size();
  } else if (written > 0) {
    cut_back_to(size_);
  }
  return error;
}

FileChange AppendFile::change() const {
  struct stat status {};
  if (!has_descriptor()) {
    return taken_ ? FileChange::closed : FileChange::none;
  }
  if (::fstat(fd_.get(), &status) != 0) {
    return FileChange::none;
  }
  if (counts_names_ && status.st_nlink == 0) {
    return FileChange::removed;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (torn_ || size == size_) {
    return FileChange::none;
  }
  return size > size_ ? FileChange::grown : FileChange::cut;
}

std::string AppendFile::moved_to() const {
  struct stat status {};
  if (!has_descriptor() || ::fstat(fd_.get(), &status) != 0) {
    return {};
  }
  const auto is_own = [&](const std::string& path) {
    struct stat named {};
    return ::stat(path.c_str(), &named) == 0 && named.st_dev == status.st_dev &&
           named.st_ino == status.st_ino;
  };
  if (is_own(path_)) {
    return {};
  }
  std::error_code unknown;
  const std::string now =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd_.get()), unknown);
  return is_own(now) ? now : std::string();
}

const char* loss_of(FileChange change) {
  switch (change) {
    case FileChange::removed:
      return "was removed or replaced by another program while it was recorded";
    case FileChange::cut:
      return "was cut off by another program while it was recorded";
    case FileChange::none:
    case FileChange::grown:
    case FileChange::closed:
      return nullptr;
  }
  return nullptr;
}

void AppendFile::cut_back_to(std::uint64_t size) {
  size_ = size;
  torn_ = !has_descriptor() || ::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0;
}

}  // namespace kymo
