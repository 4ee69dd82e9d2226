#include "base/own_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <list>
#include <optional>
#include <system_error>
#include <utility>

#include "base/mounts.h"

namespace kymo {
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

bool is_ours(uid_t user) {
  return user == ::geteuid() || user == 0;
}

std::string owned(const struct stat& info) {
  return "it belongs to uid " + std::to_string(info.st_uid);
}

// Checks what the path leads to, or what it passes (`last` is false).
Result<void> check_step(const std::string& path, const struct stat& info, bool last) {
  if (!is_ours(info.st_uid)) return refused(path, owned(info) + ", who could replace it");
  const bool folder = S_ISDIR(info.st_mode);
  const bool sticky = folder && !last && (info.st_mode & S_ISVTX) != 0;
  if (S_ISLNK(info.st_mode) || sticky || (info.st_mode & kOthersWrite) == 0) return {};
  return refused(path,
                 "other users may write " + (folder ? "into it (mode " + octal(info.st_mode) +
                                                          "), and could replace what is in it"
                                                    : "to it (mode " + octal(info.st_mode) + ")"));
}

// A step of a path that has been reached and checked.
struct Step {
  FileDescriptor fd;
  fs::path path;
  std::string mount{};  // mount_of() it
  struct stat info {};
};

// Refuses a file system that a program of another user serves (FUSE). It checks this before any
// call that the file system has to answer, because that program may never answer.
Result<void> check_mount(const Step& from, const Step& next) {
  if (next.mount == from.mount) return {};
  const std::optional<uid_t> user = fuse_user(next.mount);
  if (!user || is_ours(*user)) return {};
  return refused(next.path, "a program of uid " + std::to_string(*user) +
                                " serves its file system (FUSE), and could replace what is in it");
}

// Takes one step, and follows no link.
Result<Step> step_to(const Step& from, const fs::path& name) {
  Step next{FileDescriptor(::openat(from.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)),
            from.path / name};
  if (!next.fd.valid()) return system_error(next.path.string(), errno);
  next.mount = mount_of(next.fd.get());
  if (Result<void> good = check_mount(from, next); !good) return good.error();
  if (::fstat(next.fd.get(), &next.info) != 0) return system_error(next.path.string(), errno);
  if (Result<void> good = check_step(next.path, next.info, false); !good) return good.error();
  return next;
}

// Somebody else may make the folder first, so it is checked like one that was there.
Result<Step> make_step(const Step& from, const fs::path& name, mode_t mode) {
  if (::mkdirat(from.fd.get(), name.c_str(), mode) != 0 && errno != EEXIST) {
    return system_error((from.path / name).string(), errno);
  }
  return step_to(from, name);
}

std::list<fs::path> steps_of(const fs::path& path) {
  std::list<fs::path> steps(path.begin(), path.end());
  steps.remove_if([](const fs::path& name) { return name.empty(); });  // after a last slash
  return steps;
}

Result<fs::path> target_of(const Step& link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(link.fd.get(), "", text.data(), text.size());
  if (size < 0) return system_error(link.path.string(), errno);
  return fs::path(std::string(text.data(), static_cast<std::size_t>(size)));
}

// Goes to the end of the path.
Result<Step> walk(const std::string& path, bool make) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  std::error_code error;
  std::list<fs::path> steps = steps_of(fs::absolute(path, error));
  if (error) return system_error(path, error.value());
  Step at;  // the first step is the root
  for (int links = 0; !steps.empty();) {
    const fs::path name = std::move(steps.front());
    steps.pop_front();
    Result<Step> next = step_to(at, name);
    if (make && !next && next.error().code == Code::not_found) {
      next = make_step(at, name, steps.empty() ? 0700 : 0755);
    }
    if (!next) return next.error();
    if (!S_ISLNK(next->info.st_mode)) {
      at = std::move(next).value();
      continue;
    }
    const Result<fs::path> target = target_of(*next);
    if (!target) return target.error();
    if (++links > kMaxLinks) return system_error(next->path.string(), ELOOP);
    steps.splice(steps.begin(), steps_of(*target));
  }
  return at;
}

Result<FileDescriptor> opened(Result<Step> end) {
  if (!end) return end.error();
  if (Result<void> good = check_step(end->path, end->info, true); !good) return good.error();
  return std::move(end->fd);
}

}  // namespace

Result<void> check_own_path(const std::string& path) {
  const Result<Step> end = walk(path, false);
  if (end || end.error().code == Code::not_found) return {};
  return end.error();
}

Result<void> check_place_of(const std::string& file) {
  // First, so that nobody can make it after the check.
  const std::string folder = fs::path(file).parent_path();
  const FileDescriptor there(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return there.valid() ? check_own_path(file) : system_error(folder, errno);
}

Result<FileDescriptor> open_own_path(const std::string& path) {
  return opened(walk(path, false));
}

Result<FileDescriptor> make_own_folder(const std::string& path) {
  return opened(walk(path, true));
}

Result<void> check_own_files(const std::string& folder) {
  const Result<FileDescriptor> reached = open_own_path(folder);
  if (!reached) return reached.error();
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat info {};
    const fs::path name = entry->path().filename();
    if (::fstatat(reached->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return system_error(entry->path().string(), errno);
    }
    Result<void> good = S_ISLNK(info.st_mode) ? check_own_path(entry->path())
                                              : check_step(entry->path(), info, true);
    if (!good) return good;
  }
  return error ? system_error(folder, error.value()) : Result<void>();
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
  if (!is_ours(info.st_uid)) {
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

}  // namespace kymo
