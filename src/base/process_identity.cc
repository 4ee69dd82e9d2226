#include "base/process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace kymo {
namespace {

// The field of /proc/PID/stat with the start time, counted from 0 after the name (proc(5)).
constexpr int kStartTime = 19;

std::uint64_t own_start_ticks() {
  const Result<std::string> stat = read_file("/proc/self/stat");
  if (!stat) {
    return 0;
  }
  // The name can contain spaces and parentheses: it ends at the last closing parenthesis.
  std::istringstream fields(stat->substr(std::min(stat->rfind(')'), stat->size() - 1) + 1));
  std::string skipped;
  for (int i = 0; i < kStartTime; ++i) {
    fields >> skipped;
  }
  std::uint64_t ticks = 0;
  return fields >> ticks ? without_time_namespace(ticks) : 0;
}

}  // namespace

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id");
  return id ? id->substr(0, id->find('\n')) : "";
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

ProcessIdentity own_identity() {
  return {boot_id(), own_pid_namespace(), own_start_ticks()};
}

std::uint64_t without_time_namespace(std::uint64_t start_ticks) {
  const Result<std::string> text = read_file("/proc/self/timens_offsets");
  std::istringstream offsets(text ? *text : "");
  std::string clock;
  for (std::int64_t seconds = 0, nanoseconds = 0; offsets >> clock >> seconds >> nanoseconds;) {
    if (clock == "boottime") {
      const std::int64_t per_second = ::sysconf(_SC_CLK_TCK);
      const std::int64_t ticks = seconds * per_second + nanoseconds * per_second / 1'000'000'000;
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(start_ticks) - ticks);
    }
  }
  return start_ticks;
}

}  // namespace kymo
