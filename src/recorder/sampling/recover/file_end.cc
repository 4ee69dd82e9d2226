#include "recorder/sampling/recover/file_end.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace kymo {

Result<FileDescriptor> FileEnd::open_own(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | kOpenForeign));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return errno == ELOOP
               ? Error{Code::permission_denied, path + " is a link, which is not followed"}
               : system_error("cannot continue " + path, errno);
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    return Error{Code::permission_denied,
                 "cannot continue " + path + ": it belongs to uid " +
                     std::to_string(status.st_uid) +
                     " or is no regular file; give a regular file of your own"};
  }
  return fd;
}

Result<FileEnd> FileEnd::from(FileDescriptor fd, const std::string& path, std::uint64_t kept) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return system_error("cannot continue " + path, errno);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kept) {
    return Error{Code::data_loss,
                 path + " has " + std::to_string(size) + " bytes where the recorder left " +
                     std::to_string(kept) + "; it was changed since",
                 0};
  }
  if (::lseek(fd.get(), static_cast<off_t>(kept), SEEK_SET) < 0) {
    return system_error("cannot continue " + path, errno);
  }
  return FileEnd(std::move(fd), path, kept, size);
}

int FileEnd::append(std::string_view bytes) {
  std::size_t written = 0;
  const int error = write_all(fd_.get(), bytes, &written);
  written_to_ += written;
  return error;
}

Result<void> FileEnd::finish() {
  if (::fsync(fd_.get()) != 0) {
    return system_error("write " + path_ + " to its disk", errno);
  }
  if (written_to_ < old_size_ &&
      (::ftruncate(fd_.get(), static_cast<off_t>(written_to_)) != 0 || ::fsync(fd_.get()) != 0)) {
    return system_error("cannot cut the partial end off " + path_, errno);
  }
  return {};
}

Result<std::string> FileEnd::read_old(std::uint64_t offset, std::size_t bytes) const {
  std::string text(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t n = ::pread(fd_.get(), text.data() + filled, bytes - filled,
                              static_cast<off_t>(kept_ + offset + filled));
    if (n == 0) break;
    if (n < 0 && errno != EINTR) return system_error("read " + path_, errno);
    if (n > 0) filled += static_cast<std::size_t>(n);
  }
  text.resize(filled);
  return text;
}

}  // namespace kymo
