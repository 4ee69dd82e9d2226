#include "checkpoint/criu/drive/inherited.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace kymo::criu {
namespace {

Result<FileDescriptor> open_one(const InheritedFile& file) {
  const std::string tried = "--inherit-fd: open " + file.path;
  // A pipe or a terminal must not make kymod wait, and a terminal must not become kymod's own.
  constexpr int kFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  FileDescriptor opened(::open(file.path.c_str(), (file.only_writes ? O_WRONLY : O_RDWR) | kFlags));
  if (!opened.valid() && !file.only_writes &&
      (errno == EACCES || errno == EROFS || errno == EPERM)) {
    opened = FileDescriptor(::open(file.path.c_str(), O_RDONLY | kFlags));
  }
  if (!opened.valid() && errno == EISDIR) {
    return Error{Code::invalid_argument, tried + ": it is a folder: name a file"};
  }
  struct stat seen {};
  if (!opened.valid() || ::fstat(opened.get(), &seen) != 0) return system_error(tried, errno);
  // The process gets these flags, too.
  int flags = ::fcntl(opened.get(), F_GETFL) & ~O_NONBLOCK;
  if (S_ISREG(seen.st_mode)) flags |= O_APPEND;
  if (::fcntl(opened.get(), F_SETFL, flags) != 0) return system_error(tried, errno);
  return opened;
}

}  // namespace

Result<std::vector<FileDescriptor>> open_inherited(const std::vector<InheritedFile>& files) {
  std::vector<FileDescriptor> opened;
  for (const InheritedFile& file : files) {
    Result<FileDescriptor> one = open_one(file);
    if (!one) return one.error();
    opened.push_back(*std::move(one));
  }
  return opened;
}

}  // namespace kymo::criu
