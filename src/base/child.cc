#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "base/descriptors.h"

namespace kymo {
namespace {

constexpr int kFailed = 1;

// Allocates no memory: another thread of the program may have held a lock of the allocator.
bool silence(const std::vector<int>& kept) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(nothing, standard) < 0) return false;
  }
  return close_others(kept).ok();
}

bool begin(const ChildLife& life, const std::vector<int>& kept, pid_t parent) {
  if (life.ends == ChildLife::Ends::with_parent &&
      (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent)) {
    return false;
  }
  if (life.name != nullptr) static_cast<void>(::prctl(PR_SET_NAME, life.name));
  if (life.nice != 0) static_cast<void>(::setpriority(PRIO_PROCESS, 0, life.nice));
  if (life.on_duty) {
    for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE}) {
      static_cast<void>(::signal(ignored, SIG_IGN));
    }
  }
  return !life.silent || silence(kept);
}

}  // namespace

Result<pid_t> fork_child(const ChildLife& life, const std::function<int()>& work) {
  std::vector<int> kept = life.keeps;
  kept.insert(kept.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  std::sort(kept.begin(), kept.end());
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error(life.what, errno);
  if (child > 0) return child;
  int code = kFailed;
  try {
    if (begin(life, kept, parent)) code = work();
  } catch (const std::exception&) {  // no memory
  }
  ::_exit(code);
}

}  // namespace kymo
