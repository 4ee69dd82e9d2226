#include "confine/run.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

namespace kymo::confine {
namespace {

constexpr int kFailed = 1;

void flush() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

int exit_code_of(const Bounds& bounds, const std::function<int()>& work) {
  if (Result<void> confined = confine_self(bounds); !confined) {
    std::cerr << "kymo: " << confined.error().message << '\n';
    return kFailed;
  }
  try {
    return work();
  } catch (const std::bad_alloc&) {
    std::cerr << "kymo: reading it takes more memory than it may\n";
  } catch (const std::exception& error) {
    std::cerr << "kymo: " << error.what() << '\n';
  }
  return kFailed;
}

}  // namespace

Result<int> run_confined(const Bounds& bounds, const std::function<int()>& work) {
  flush();    // otherwise the child would write buffered output a second time
  ::tzset();  // the child cannot open the file of the time zone
  const pid_t child = ::fork();
  if (child < 0) return system_error("start a process without rights", errno);
  if (child == 0) {
    const int code = exit_code_of(bounds, work);
    flush();
    ::_exit(code);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("wait for a process without rights", errno);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return reader_died();
}

}  // namespace kymo::confine
