#include "base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace kymo {
namespace {

// The folder, only to open files in it.
FileDescriptor at(const std::string& folder) {
  return FileDescriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Error cannot_open(const std::string& folder, const std::string& name, int error) {
  const std::string tried = "cannot open " + folder + "/" + name;
  if (error != ELOOP) return system_error(tried, error);
  return Error{Code::permission_denied, tried + ": a link is in the way, which is not followed",
               error};
}

// What was asked for: a folder, or else a regular file.
Result<FileDescriptor> as_asked(FileDescriptor fd, int flags, const std::string& folder,
                                const std::string& name) {
  if ((flags & O_DIRECTORY) != 0) return fd;
  return only_regular(std::move(fd), folder + "/" + name);
}

struct Place {
  std::string folder;
  std::string name;
};

Place place_of(const std::filesystem::path& path) {
  return {path.has_parent_path() ? path.parent_path() : ".", path.filename()};
}

}  // namespace

Result<FileDescriptor> open_beneath_by_parts(const std::string& folder, const std::string& name,
                                             int flags, mode_t mode) {
  FileDescriptor reached = at(folder);
  std::size_t begin = 0;
  for (std::size_t slash = 0; reached.valid(); begin = slash + 1) {
    slash = name.find('/', begin);
    const std::string part = name.substr(begin, slash - begin);
    if (part == "..") return cannot_open(folder, name, EXDEV);
    const bool last = slash == std::string::npos;
    const int how = last ? flags | kOpenForeign : O_PATH | O_DIRECTORY | O_CLOEXEC;
    reached = FileDescriptor(::openat(reached.get(), part.c_str(), how | O_NOFOLLOW, mode));
    if (last && reached.valid()) return as_asked(std::move(reached), flags, folder, name);
  }
  return cannot_open(folder, name, errno);
}

Result<FileDescriptor> open_beneath(const std::string& folder, const std::string& name, int flags,
                                    mode_t mode) {
  const FileDescriptor from = at(folder);
  if (!from.valid()) return cannot_open(folder, name, errno);
  open_how how{};
  how.flags = static_cast<unsigned>(flags | kOpenForeign);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  FileDescriptor opened(
      static_cast<int>(::syscall(SYS_openat2, from.get(), name.c_str(), &how, sizeof how)));
  if (opened.valid()) return as_asked(std::move(opened), flags, folder, name);
  // A container's seccomp filter and our own (confine/confine.h) answer EPERM.
  const bool none = errno == ENOSYS || errno == EPERM;
  return none ? open_beneath_by_parts(folder, name, flags, mode) : cannot_open(folder, name, errno);
}

Result<std::string> read_beneath(const std::string& folder, const std::string& name,
                                 std::size_t most) {
  const Result<FileDescriptor> fd = open_beneath(folder, name, O_RDONLY);
  return fd ? read_all(fd->get(), folder + "/" + name, most) : fd.error();
}

Result<FileDescriptor> open_no_link(const std::string& path, int flags) {
  const Place place = place_of(path);
  return open_beneath(place.folder, place.name, flags);
}

Result<std::string> read_no_link(const std::string& path, std::size_t most) {
  const Place place = place_of(path);
  return read_beneath(place.folder, place.name, most);
}

}  // namespace kymo
