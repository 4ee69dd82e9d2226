#include "base/proc/thread_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace kymo::probe {

ThreadList::ThreadList(pid_t process, const std::string& root)
    : folder_(::open((root + "/" + std::to_string(process) + "/task").c_str(),
                     O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_.valid() && errno != ENOENT && errno != ESRCH) error_ = errno;
}

bool ThreadList::fill() {
  at_ = size_ = 0;
  if (!folder_.valid()) return false;
  const ssize_t got = ::getdents64(folder_.get(), entries_.data(), entries_.size());
  if (got < 0 && errno != ENOENT) error_ = errno;
  if (got > 0) size_ = static_cast<std::size_t>(got);
  return size_ != 0;
}

pid_t ThreadList::next() {
  while (at_ < size_ || fill()) {
    const char* const entry = entries_.data() + at_;
    decltype(dirent64::d_reclen) length = 0;
    std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
    at_ += length;
    const std::string_view name(entry + offsetof(dirent64, d_name));
    pid_t thread = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), thread);
    if (error == std::errc() && end == name.data() + name.size()) return thread;
  }
  return 0;
}

}  // namespace kymo::probe
