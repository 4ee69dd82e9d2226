#include "base/confine/readers.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace kymo::confine {

Readers::Readers() {
  // Without a handler of its own, SIGCHLD would not end ppoll().
  static_cast<void>(::signal(SIGCHLD, [](int) {}));
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ended, &before_);
  ::sigdelset(&before_, SIGCHLD);
}

void Readers::leave() const {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Readers::add(pid_t pid, FileDescriptor lifeline) {
  readers_.push_back({pid, std::move(lifeline)});
}

void Readers::reap() {
  for (pid_t pid = 0; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) {
    std::erase_if(readers_, [pid](const Reader& reader) { return reader.pid == pid; });
  }
}

void Readers::wait_for(int socket) {
  for (;;) {
    reap();
    std::vector<pollfd> ready{{socket, POLLIN, 0}};
    for (const Reader& reader : readers_) ready.push_back({reader.lifeline.get(), POLLIN, 0});
    if (::ppoll(ready.data(), ready.size(), nullptr, &before_) < 0) continue;
    for (std::size_t i = 1; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      // The reader has not been reaped since poll(2), so no other process has its pid.
      ::kill(readers_[i - 1].pid, SIGKILL);
      readers_[i - 1].lifeline.reset();
    }
    if (ready[0].revents != 0) return;
  }
}

}  // namespace kymo::confine
