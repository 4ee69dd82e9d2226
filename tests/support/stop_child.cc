#include "support/stop_child.h"

#include <signal.h>
#include <sys/wait.h>

namespace kymo::test {

bool stop_child(pid_t child) {
  if (kill(child, SIGSTOP) != 0) return false;
  // The kernel reports the stop when the last thread has stopped. The report is not consumed, so
  // that others can wait for this child, too.
  siginfo_t change{};
  const auto id = static_cast<id_t>(child);
  return waitid(P_PID, id, &change, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
         change.si_code == CLD_STOPPED;
}

}  // namespace kymo::test
