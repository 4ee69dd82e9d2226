#include "daemon/own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace kymo::daemon {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

Error refused(const std::string& path, const std::string& why) {
  return Error{Code::permission_denied, path + ": " + why};
}

}  // namespace

Result<FileDescriptor> open_own_folder(const std::string& path) {
  FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!folder.valid() || ::fstat(folder.get(), &info) != 0) {
    const int error = errno;
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return refused(path, "it is a link, which is not followed: replace it by a folder");
    }
    return system_error(path, error);
  }
  const uid_t us = ::geteuid();
  if (info.st_uid != us && info.st_uid != 0) {
    return refused(path, "it belongs to uid " + std::to_string(info.st_uid) +
                             ", who could change what kymod writes there: chown it to uid " +
                             std::to_string(us));
  }
  if ((info.st_mode & kOthersWrite) != 0) {
    return refused(path, "other users may write into it (mode " + octal(info.st_mode) +
                             ") and could change what kymod writes there: chmod go-w " + path);
  }
  return folder;
}

}  // namespace kymo::daemon
