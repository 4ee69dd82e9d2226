#include "checkpoint/runtimes/shared/descriptors.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr rlim_t kStep = 128;
// CRIU's own descriptors (fewer than 32: enum sfd_type in criu/include/servicefd.h) and its safety
// pad of 16.
constexpr rlim_t kCriusOwn = 32 + 16;

bool may_raise_limits() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  return ::syscall(SYS_capget, &header, data.data()) == 0 &&
         (data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)) != 0;
}

rlim_t highest_descriptor(pid_t pid) {
  rlim_t highest = 0;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    rlim_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    highest = std::max(highest, number);
  }
  return highest;
}

}  // namespace

Result<void> check_descriptors(const std::string& tried, pid_t root) {
  rlimit limit{};
  if (may_raise_limits() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  rlim_t needed = 0;
  for (const pid_t pid : probe::process_tree(root)) {
    needed = std::max(needed, highest_descriptor(pid) + 1 + kCriusOwn);
  }
  needed = (needed + kStep - 1) / kStep * kStep;
  if (limit.rlim_cur >= needed) return {};
  return Error{Code::failed_precondition,
               tried + ": CRIU needs " + std::to_string(needed) +
                   " file descriptors to restore it, and kymod's limit is " +
                   std::to_string(limit.rlim_cur) +
                   ": start kymod with a higher limit (ulimit -n " + std::to_string(needed) +
                   ", or LimitNOFILE= in its service)"};
}

}  // namespace kymo::runtime
