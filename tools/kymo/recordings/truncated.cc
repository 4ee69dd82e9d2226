#include "recordings/truncated.h"

#include <signal.h>
#include <unistd.h>

namespace kymo::cli {
namespace {

// Prepared before, so that the signal handler only has to write them.
std::string g_line;
std::string g_screen;

void write_out(int fd, const std::string& text) {
  if (::write(fd, text.data(), text.size()) < 0) {
    return;  // the failure cannot be reported
  }
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code != BUS_ADRERR) {  // the cause is not a truncated file: use the default action
    ::signal(signal, SIG_DFL);
    return;
  }
  write_out(STDOUT_FILENO, g_screen);
  write_out(STDERR_FILENO, g_line);
  ::_exit(1);
}

}  // namespace

void end_where_truncated(const std::string& line, const std::string& screen) {
  g_line = "kymo: " + line + "\n";
  g_screen = screen;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace kymo::cli
