#include "base/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/pipe.h"
#include "base/spawn.h"

namespace kymo {

Result<HelperProcess> start_helper(const char* argument, std::string_view order) {
  Result<Pipe> orders = make_pipe();
  if (!orders) return orders.error();
  Result<Pipe> answers = make_pipe();
  if (!answers) return answers.error();
  const Result<pid_t> pid =
      spawn({.file = "/proc/self/exe",
             .words = {program_invocation_short_name, argument},
             .descriptors = {orders->from.get(), answers->to.get(), kDevNull}});
  if (!pid) return pid.error();
  ::fcntl(answers->from.get(), F_SETFL, O_NONBLOCK);
  // If the helper has ended, its answers say so by their end.
  std::size_t written = 0;
  static_cast<void>(write_all(orders->to.get(), order, &written));
  return HelperProcess{*pid, std::move(orders->to), std::move(answers->from)};
}

int begin_helper(const char* name, int answers) {
  static_cast<void>(::prctl(PR_SET_NAME, name));
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ}) {
    static_cast<void>(::signal(ignored, SIG_IGN));
  }
  ::umask(0077);
  const int own = ::fcntl(answers, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const FileDescriptor nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (own < 0 || ::dup2(nothing.get(), answers) < 0) return answers;
  return own;
}

void write_line(int to, const std::string& line) {
  std::size_t written = 0;
  static_cast<void>(write_all(to, line + "\n", &written));
}

}  // namespace kymo
