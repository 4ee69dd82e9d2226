#include "base/reap.h"

#include <sys/wait.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace kymo {

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
  try {
    std::thread([child] {
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    }).detach();
  } catch (const std::system_error&) {  // the child stays a zombie until this program ends
  }
  return std::nullopt;
}

}  // namespace kymo
