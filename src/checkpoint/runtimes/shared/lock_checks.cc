#include "checkpoint/runtimes/shared/lock_checks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/preflight/text.h"

namespace kymo::runtime {
namespace {

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

// Takes the number at the beginning of the text, up to `end` or to the end of the text.
template <class Number>
bool take(std::string_view& text, char end, int base, Number& number) {
  const std::string_view word = text.substr(0, text.find(end));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && stop == word.data() + word.size();
}

}  // namespace

// "1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF". A line with "->" is of a process that waits.
std::optional<HeldLocks::Held> HeldLocks::parse(std::string_view line) {
  const std::vector<std::string_view> words = preflight::words_of(line);
  if (words.size() < 8 || words[1] == "->") return std::nullopt;
  Held held;
  held.whole = words[1] == "FLOCK";
  if (!held.whole && words[1] != "POSIX" && words[1] != "OFDLCK") return std::nullopt;
  held.exclusive = words[3] == "WRITE";
  std::string_view pid = words[4];
  std::string_view file = words[5];
  std::string_view start = words[6];
  std::string_view last = words[7];
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
  if (!take(pid, ' ', 10, held.pid) || !take(file, ':', 16, major) || !take(file, ':', 16, minor) ||
      !take(file, ' ', 10, inode) || !take(start, ' ', 10, held.start)) {
    return std::nullopt;
  }
  held.device = ::makedev(major, minor);
  held.inode = inode;
  if (last == "EOF") {
    held.last = kEnd;
  } else if (!take(last, ' ', 10, held.last)) {
    return std::nullopt;
  }
  held.pid = std::max(held.pid, 0);  // -1: a lock of an open file, which belongs to no process
  return held;
}

HeldLocks::HeldLocks(std::string_view table) {
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    if (const std::optional<Held> held = parse(line); held) held_.push_back(*held);
  }
}

HeldLocks HeldLocks::now() {
  const Result<std::string> table = read_file("/proc/locks");
  return HeldLocks(table ? *table : std::string());
}

std::optional<LockHolder> HeldLocks::holder_of(const criu::NeededLock& lock) const {
  struct statx file {};
  if (held_.empty() ||
      ::statx(AT_FDCWD, lock.path.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &file) != 0) {
    return std::nullopt;
  }
  const dev_t device = ::makedev(file.stx_dev_major, file.stx_dev_minor);
  const std::uint64_t last = lock.length == 0 ? kEnd : lock.start + lock.length - 1;
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
    return held.whole == lock.whole && (held.exclusive || lock.exclusive) &&
           held.device == device && held.inode == file.stx_ino &&
           (held.whole || (held.start <= last && lock.start <= held.last));
  });
  if (found == held_.end()) return std::nullopt;
  const Result<probe::Process> process = probe::read_process(found->pid);
  return LockHolder{found->pid, process ? process->name : ""};
}

}  // namespace kymo::runtime
