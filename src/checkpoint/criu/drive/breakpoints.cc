#include "checkpoint/criu/drive/breakpoints.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/child.h"

namespace kymo::criu {
namespace {

// CRIU's number of the fault "no breakpoints" (FI_NO_BREAKPOINTS in criu/include/fault-injection.h,
// CRIU 2.12 and later). CRIU then stops a process at its system calls, as it does without debug
// registers.
constexpr const char* kFault = "CRIU_FAULT";
constexpr const char* kNoBreakpoints = "130";
constexpr const char* kVariable = "CRIU_FAULT=130";

bool avoided = false;  // set before any other thread runs

// The instruction at which the child has to stop.
[[gnu::noinline]] void breakpoint_here() {
  asm volatile("");
}

int run_to_breakpoint() {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 1;
  ::raise(SIGSTOP);
  breakpoint_here();
  return 0;
}

// Sets the first debug register to the address, and switches on its breakpoint for execution
// (Intel SDM, volume 3, chapter "Debug registers").
bool set_breakpoint(pid_t pid, void (*address)()) {
  constexpr std::uintptr_t kFirstIsOn = 1;
  constexpr std::size_t kRegister = offsetof(struct user, u_debugreg);
  constexpr std::size_t kControl = kRegister + 7 * sizeof(long);
  // NOLINTNEXTLINE(*-vararg, *-reinterpret-cast): ptrace's own way
  return ::ptrace(PTRACE_POKEUSER, pid, kRegister, reinterpret_cast<void*>(address)) == 0 &&
         // NOLINTNEXTLINE(*-vararg, *-reinterpret-cast, performance-no-int-to-ptr)
         ::ptrace(PTRACE_POKEUSER, pid, kControl, reinterpret_cast<void*>(kFirstIsOn)) == 0;
}

bool wait_for(pid_t pid, int& status) {
  return ::waitpid(pid, &status, 0) == pid;
}

}  // namespace

bool hardware_breakpoints_work() {
  const Result<pid_t> child = fork_child({}, run_to_breakpoint);
  if (!child) return true;
  const pid_t pid = *child;
  int status = 0;
  if (!wait_for(pid, status) || !WIFSTOPPED(status)) return true;
  const bool tried = set_breakpoint(pid, breakpoint_here) &&
                     ::ptrace(PTRACE_CONT, pid, nullptr, nullptr) == 0 && wait_for(pid, status);
  const bool ran_through = tried && WIFEXITED(status);
  if (!tried || WIFSTOPPED(status)) {
    ::kill(pid, SIGKILL);
    wait_for(pid, status);
  }
  return !ran_through;
}

bool avoid_broken_breakpoints() {
  if (hardware_breakpoints_work()) return false;
  constexpr int kKeepWhatIsSet = 0;
  ::setenv(kFault, kNoBreakpoints,
           kKeepWhatIsSet);  // NOLINT(concurrency-mt-unsafe): see the header
  avoided = true;
  return true;
}

const char* without_breakpoints() {
  return avoided ? kVariable : nullptr;
}

}  // namespace kymo::criu
