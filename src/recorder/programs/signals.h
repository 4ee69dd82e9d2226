#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

#include "base/file.h"

namespace kymo::record {

// Blocks signals and makes them readable from a file descriptor, as long as the object lives.
class Signals {
 public:
  Signals(std::initializer_list<int> signals) {
    sigemptyset(&set_);
    for (const int signal : signals) {
      sigaddset(&set_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = FileDescriptor(::signalfd(-1, &set_, SFD_CLOEXEC));
  }
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Waits for a signal and takes it.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                : 0;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  FileDescriptor fd_;
};

// Ignores SIGINT and SIGQUIT, as a shell does while a command has the terminal.
class TerminalSignalsIgnored {
 public:
  TerminalSignalsIgnored()
      : interrupt_(::signal(SIGINT, SIG_IGN)), quit_(::signal(SIGQUIT, SIG_IGN)) {}
  ~TerminalSignalsIgnored() {
    ::signal(SIGINT, interrupt_);
    ::signal(SIGQUIT, quit_);
  }
  TerminalSignalsIgnored(const TerminalSignalsIgnored&) = delete;
  TerminalSignalsIgnored& operator=(const TerminalSignalsIgnored&) = delete;

 private:
  sighandler_t interrupt_;
  sighandler_t quit_;
};

}  // namespace kymo::record
