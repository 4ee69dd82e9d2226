// A library that is preloaded into criu. When criu or its action script is about to write a given text, such as the
// name of a notification, criu gets a signal, once. KYMO_BREAK is "TEXT:SIGNAL". With the signal -1, the process that
// is about to write the text waits there for ever instead. (CRIU gives up if a process of its restore is stopped.)
// KYMO_BREAK_AFTER is the number of times that the text may be written before.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

char text[64];
int signal_number = 0;
int writes_before = 0;

// Reads the environment at the start, because criu clears it later.
__attribute__((constructor)) void read_order() {
  const char* order = getenv("KYMO_BREAK");
  const char* colon = order != nullptr ? strrchr(order, ':') : nullptr;
  if (colon == nullptr || static_cast<size_t>(colon - order) >= sizeof(text)) {
    return;
  }
  memcpy(text, order, static_cast<size_t>(colon - order));
  signal_number = atoi(colon + 1);
  const char* before = getenv("KYMO_BREAK_AFTER");
  writes_before = before != nullptr ? atoi(before) : 0;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Shows the test that what stops now is stopped here, and not for an instant by its tracer.
void set_timer_slack(pid_t pid) {
  char path[40];
  snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", static_cast<int>(pid));
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  constexpr char kSlack[] = "424242";  // the same as in breakable_criu.cc
  real<ssize_t(int, const void*, size_t)>("write")(fd, kSlack, sizeof(kSlack) - 1);
  close(fd);
}

void break_at(const void* packet, size_t size) {
  if (signal_number != 0 && memmem(packet, size, text, strlen(text)) != nullptr &&
      writes_before-- == 0) {
    const bool is_script = strcmp(program_invocation_short_name, "sh") == 0;
    const int now = signal_number;
    while (now < 0) pause();
    signal_number = 0;
    unsetenv("KYMO_BREAK");  // the action scripts must not inherit it
    const pid_t stopped = is_script ? getppid() : getpid();
    if (is_script) {
      set_timer_slack(stopped);
    } else {
      prctl(PR_SET_TIMERSLACK, 424242);  // CRIU may see another /proc here
    }
    kill(stopped, now);
  }
}

}  // namespace

extern "C" {

// Calls for CRIU's packets, and for its log, which has a line about a notification just before the packet.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's are reserved
ssize_t write(int fd, const void* packet, size_t size) {
  break_at(packet, size);
  return real<ssize_t(int, const void*, size_t)>("write")(fd, packet, size);
}

}  // extern "C"
