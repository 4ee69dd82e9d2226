#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/inodes.h"

namespace kymo {
namespace {

constexpr mode_t kFileMode = 0644;
// How many files that killed writers with the same pid have left may be in the way.
constexpr int kMaxLeftBehind = 1000;

// Creates a new file next to `path` with a name that no other call uses. Sets `name` to it.
FileDescriptor create_beside(const std::string& path, std::string* name) {
  static std::atomic<std::uint64_t> calls{0};
  FileDescriptor fd;
  for (int tries = 0; !fd.valid() && tries < kMaxLeftBehind; ++tries) {
    *name = path + ".new-" + std::to_string(::getpid()) + '-' +
            std::to_string(calls.fetch_add(1, std::memory_order_relaxed));
    fd = FileDescriptor(
        ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (!fd.valid() && errno != EEXIST) break;
  }
  return fd;
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of an unknown kind";
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

std::string advice_on_full_disk(const std::string& path, int errno_value) {
  if (errno_value != ENOSPC) return {};
  const std::optional<std::uint64_t> few = few_free_inodes(path);
  return few ? advice_on_few_inodes(*few) : "";
}

std::string advice_on_creating(const std::string& path, int errno_value) {
  if (errno_value == EEXIST) return "; choose another name or move it away";
  if (errno_value != ENOENT) return advice_on_full_disk(path, errno_value);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  // /proc, for example, is there and takes no files.
  return ::stat(folder.c_str(), &status) == 0
             ? "; its folder exists, but takes no files: choose another folder"
             : "; create its folder first";
}

Result<FileDescriptor> create_append_only(const std::string& path) {
  FileDescriptor fd(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!fd.valid()) {
    Error error = system_error("cannot create " + path, errno);
    error.message += advice_on_creating(path, error.errno_value);
    return error;
  }
  return fd;
}

int write_all(int fd, std::string_view data, std::size_t* written) {
  *written = 0;
  while (*written < data.size()) {
    const ssize_t n = ::write(fd, data.data() + *written, data.size() - *written);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return errno;
    }
    if (n == 0) {
      return EIO;  // no byte was written and there is no error: do not try for ever
    }
    *written += static_cast<std::size_t>(n);
  }
  return 0;
}

Result<FileDescriptor> open_regular(const std::string& path, int flags, unsigned mode) {
  FileDescriptor fd(::open(path.c_str(), flags | kOpenForeign, mode));
  if (!fd.valid()) return system_error("cannot open " + path, errno);
  return only_regular(std::move(fd), path);
}

Result<FileDescriptor> only_regular(FileDescriptor fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("cannot open " + path, errno);
  if (S_ISREG(status.st_mode)) return fd;
  return Error{Code::invalid_argument, "cannot read " + path + ": it is not a regular file (" +
                                           kind_of(status.st_mode) +
                                           "): remove it or name another file"};
}

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const Result<FileDescriptor> fd = open_regular(path);
  return fd ? read_all(fd->get(), path, most) : fd.error();
}

Result<std::string> read_all(int fd, const std::string& path, std::size_t most) {
  std::string text;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n == 0) {
      return text;
    }
    if (n < 0 && errno != EINTR) {
      return system_error("cannot read " + path, errno);
    }
    text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (text.size() > most) {
      return Error{Code::data_loss, "cannot read " + path + ": it is too large to be such a file"};
    }
  }
}

Result<FileDescriptor> create_anew(const std::string& path, unsigned mode) {
  ::unlink(path.c_str());
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) {
    return system_error("cannot create " + path, errno);
  }
  return fd;
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  std::string temporary;
  FileDescriptor fd = create_beside(path, &temporary);
  if (!fd.valid()) {
    Error error = system_error("cannot write " + path, errno);
    error.message += advice_on_full_disk(path, error.errno_value);
    return error;
  }
  std::size_t written = 0;
  if (const int error = write_all(fd.get(), content, &written); error != 0) {
    ::unlink(temporary.c_str());
    return system_error("cannot write " + path, error);
  }
  // The slow step. CRIU cannot restore a process that had the file open here once the file is
  // replaced again.
  fd.reset();
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return system_error("cannot replace " + path, error);
  }
  return {};
}

int make_folders(const std::string& path) {
  constexpr mode_t kOthersOnlyRead = 0755;
  int error = 0;
  for (std::size_t end = 0; end != std::string::npos && !path.empty();) {
    end = path.find('/', end + 1);
    const bool made = ::mkdir(path.substr(0, end).c_str(), kOthersOnlyRead) == 0;
    if (!made && errno != EEXIST && error == 0) error = errno;
  }
  struct stat there {};
  if (path.empty() || (::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode))) return 0;
  return error != 0 ? error : ENOTDIR;
}

void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace kymo
