#include "browser.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace kymo::cli {

Result<void> open_in_browser(const std::string& url) {
  const char* named = std::getenv("BROWSER");
  std::string program = named != nullptr && *named != '\0' ? named : "xdg-open";
  std::string address = url;
  char* arguments[] = {program.data(), address.data(), nullptr};
  pid_t pid = 0;
  const int cause = posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments, environ);
  if (cause != 0) {
    return Error{Code::not_found,
                 "open the page with " + program +
                     ": it cannot be started: open the address yourself, or name "
                     "a program with BROWSER",
                 cause};
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{Code::unknown, "open the page with " + program +
                                  ": it failed: open the address "
                                  "yourself, or name a program with BROWSER"};
}

}  // namespace kymo::cli
