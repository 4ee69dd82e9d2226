#include "daemon/state/own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <list>

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

Error refused(const std::string& path, const std::string& why) {
  return Error{Code::permission_denied, path + ": " + why};
}

bool is_ours(const struct stat& info) {
  return info.st_uid == ::geteuid() || info.st_uid == 0;
}

std::string owned(const struct stat& info) {
  return "it belongs to uid " + std::to_string(info.st_uid);
}

// Checks one folder or symbolic link of a path.
Result<void> check_step(const std::string& path, const struct stat& info) {
  if (!is_ours(info)) {
    return refused(path, owned(info) + ", who could replace it");
  }
  const bool open_to_others = (info.st_mode & kOthersWrite) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (S_ISDIR(info.st_mode) && open_to_others) {
    return refused(path, "other users may write into it (mode " + octal(info.st_mode) +
                             "), and could replace what is in it");
  }
  return {};
}

}  // namespace

Result<void> check_own_path(const std::string& path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  const auto steps_of = [](const fs::path& way) {
    return std::list<fs::path>(way.begin(), way.end());
  };
  std::list<fs::path> steps = steps_of(path);
  fs::path at;
  for (int links = 0; !steps.empty();) {
    const fs::path next = at / steps.front();
    steps.pop_front();
    struct stat info {};
    if (::lstat(next.c_str(), &info) != 0) {
      return errno == ENOENT ? Result<void>() : system_error(next.string(), errno);
    }
    if (Result<void> good = check_step(next, info); !good) return good;
    if (!S_ISLNK(info.st_mode)) {
      at = next;
      continue;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMaxLinks)
      return system_error(next.string(), error ? error.value() : ELOOP);
    steps.splice(steps.begin(), steps_of(target));
  }
  return {};
}

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
  if (!is_ours(info)) {
    return refused(path, owned(info) +
                             ", who could change what kymod writes there: chown it to uid " +
                             std::to_string(::geteuid()));
  }
  if ((info.st_mode & kOthersWrite) != 0) {
    return refused(path, "other users may write into it (mode " + octal(info.st_mode) +
                             ") and could change what kymod writes there: chmod go-w " + path);
  }
  return folder;
}

}  // namespace kymo::daemon
