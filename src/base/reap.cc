#include "base/reap.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/own_thread.h"

namespace kymo {

int reap(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::optional<int> reap_within(pid_t child, std::chrono::milliseconds time, rusage* used) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    int status = 0;
    const pid_t ended = ::wait4(child, &status, WNOHANG, used);
    if (ended == child || (ended < 0 && errno != EINTR)) {
      return status;
    }
    if (std::chrono::steady_clock::now() >= until) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Without a thread, the child stays a zombie until this program ends.
  static_cast<void>(on_own_thread([child] { reap(child); }).ok());
  return std::nullopt;
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

int shell_exit_code(int wait_status) {
  constexpr int kSignalled = 128;
  return WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string how_it_ended(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
  }
  const int signal = WTERMSIG(wait_status);
  const char* const name = ::sigabbrev_np(signal);
  return "was ended by signal " + std::to_string(signal) +
         (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

}  // namespace kymo
