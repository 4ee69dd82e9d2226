#include "checkpoint/criu/repair/guard.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>

#include "base/child.h"
#include "base/file.h"
#include "base/pipe.h"
#include "base/reap.h"
#include "checkpoint/criu/repair/borrowed.h"
#include "checkpoint/criu/repair/connections.h"

namespace kymo::criu {
namespace {

// The guard ends within this time after CRIU.
constexpr std::chrono::milliseconds kEndsWithin{100};

// NOLINTBEGIN(*-vararg, *-reinterpret-cast, performance-no-int-to-ptr): ptrace's own way
long ptrace_with(__ptrace_request what, pid_t pid, std::uintptr_t data = 0) {
  return ::ptrace(what, pid, nullptr, reinterpret_cast<void*>(data));
}

// Whether CRIU, which is stopped at the start of its exit, exits with status 0. It then traces nothing any more.
bool exits_well(pid_t criu) {
  unsigned long wait_status = 1;
  return ::ptrace(PTRACE_GETEVENTMSG, criu, nullptr, &wait_status) == 0 && wait_status == 0;
}
// NOLINTEND(*-vararg, *-reinterpret-cast, performance-no-int-to-ptr)

// Allocates no memory: this is a fork of a program with threads, one of which may have held a lock of the allocator.
void mend_connections(pid_t criu) {
  for_each_traced_by(criu, "/proc", leave_repair_mode);
}

// Lets CRIU go on after a stop, as if it were not traced. Returns false if the exit has begun, and the guard is done.
bool continue_criu(pid_t criu, int status) {
  const int event = static_cast<int>(static_cast<unsigned>(status) >> 16U);
  const int signal = WSTOPSIG(status);
  if (event == PTRACE_EVENT_EXIT) {
    if (!exits_well(criu)) mend_connections(criu);
    ptrace_with(PTRACE_DETACH, criu);
    return false;
  }
  if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    ptrace_with(PTRACE_LISTEN, criu);  // it was stopped by a signal, and stays so until SIGCONT
  } else {
    ptrace_with(PTRACE_CONT, criu, event == 0 ? static_cast<std::uintptr_t>(signal) : 0);
  }
  return true;
}

// The life of the guard. It closes the pipe when it traces CRIU or cannot.
int guard(pid_t criu, int ready) {
  const bool traces = ptrace_with(PTRACE_SEIZE, criu, PTRACE_O_TRACEEXIT) == 0;
  ::close(ready);
  while (traces) {
    int status = 0;
    const pid_t seen = ::waitpid(criu, &status, __WALL);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0 || !WIFSTOPPED(status) || !continue_criu(criu, status)) break;
  }
  return 0;
}

}  // namespace

Result<Guard> Guard::start(pid_t criu) {
  Result<Pipe> ready = make_pipe();
  if (!ready) return ready.error();
  const Result<pid_t> pid = fork_child({.what = "start the guard of criu",
                                        .name = "kymod-guard",
                                        .ends = ChildLife::Ends::by_itself,
                                        .on_duty = true,
                                        .silent = true,
                                        .keeps = {ready->to.get()}},
                                       [criu, to = ready->to.get()] { return guard(criu, to); });
  if (!pid) return pid.error();
  ready->to.reset();
  char nothing = 0;
  while (::read(ready->from.get(), &nothing, 1) < 0 && errno == EINTR) {
  }
  return Guard(*pid);
}

void Guard::wake() const noexcept {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

Guard::~Guard() {
  if (pid_ > 0) reap_within(pid_, kEndsWithin);
}

}  // namespace kymo::criu
