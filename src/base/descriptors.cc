#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

namespace kymo {
namespace {

int number_in(std::string_view text) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && after == end ? number : -1;
}

// For a kernel without close_range(2) (before Linux 5.9), and for a container that forbids it.
Result<void> close_one_by_one(const std::vector<int>& kept) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (!folder) return system_error("list the open files of a helper process", errno);
  const int own = ::dirfd(folder.get());
  std::vector<int> open;
  errno = 0;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const int fd = number_in(entry->d_name);
    if (fd >= 0 && fd != own) open.push_back(fd);
  }
  if (errno != 0) return system_error("list the open files of a helper process", errno);
  for (const int fd : open) {
    if (!std::binary_search(kept.begin(), kept.end(), fd)) ::close(fd);
  }
  return {};
}

// Puts /dev/null in the place of standard input.
Result<void> empty_input() {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // closed with all others
  if (nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0) return {};
  return system_error("open /dev/null for a helper process", errno);
}

}  // namespace

Result<void> close_all_but(std::vector<int> kept) {
  if (std::find(kept.begin(), kept.end(), STDIN_FILENO) == kept.end()) {
    if (Result<void> emptied = empty_input(); !emptied) return emptied;
  }
  kept.insert(kept.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  std::sort(kept.begin(), kept.end());
  return close_others(kept);
}

Result<void> close_others(const std::vector<int>& kept) {
  unsigned first = 0;  // of the numbers that are not looked at yet
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > first && ::close_range(first, number - 1, 0) != 0) return close_one_by_one(kept);
    first = std::max(first, number + 1);
  }
  return ::close_range(first, ~0U, 0) == 0 ? Result<void>() : close_one_by_one(kept);
}

void open_standard_descriptors() {
  for (int fd = 0; fd <= STDERR_FILENO;) {
    fd = ::open("/dev/null", O_RDWR);
    if (fd < 0) return;
    if (fd > STDERR_FILENO) ::close(fd);
  }
}

int descriptor_named(const std::string& path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    std::string_view name = path;
    name.remove_prefix(folder.size());
    const int fd = number_in(name);
    struct stat seen {};
    if (fd < 0 || ::fstat(fd, &seen) != 0) return -1;
    const bool opens = S_ISREG(seen.st_mode) || S_ISFIFO(seen.st_mode) || S_ISDIR(seen.st_mode);
    return opens ? fd : -1;
  }
  return -1;
}

}  // namespace kymo
