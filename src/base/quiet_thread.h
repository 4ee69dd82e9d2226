#pragma once

#include <signal.h>

#include <initializer_list>
#include <thread>
#include <utility>

namespace kymo {

// While in scope, the calling thread has more signals blocked. The destructor restores the mask.
class SignalsBlocked {
 public:
  explicit SignalsBlocked(const sigset_t& more) { ::pthread_sigmask(SIG_BLOCK, &more, &before_); }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Starts a thread with all signals blocked, except those of a fault of the thread itself. So the
// kernel never chooses it for a signal to the process: the program may block a signal in its own
// threads at any time and read it with signalfd(2), and no handler of the program runs here. A write
// beyond RLIMIT_FSIZE and a write to a pipe without a reader return their error, and do not end the
// program.
//
// A thread and a program that this thread starts inherit the mask.
// Errors: throws std::system_error like std::thread.
template <class... Arguments>
std::thread quiet_thread(Arguments&&... arguments) {
  sigset_t all;
  sigfillset(&all);  // without the signals that the C library uses for itself
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&all, fault);
  }
  const SignalsBlocked blocked(all);  // the new thread inherits the mask
  return std::thread(std::forward<Arguments>(arguments)...);
}

// While in scope, a write of this thread beyond RLIMIT_FSIZE, or to a pipe without a reader, returns
// its error and does not end the program. For code that writes on a thread of the program.
//
// The kernel sends these signals to the thread that writes. The destructor takes them away, unless
// they were pending before.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() : blocked_(both()) { ::sigpending(&pending_before_); }
  ~WriteSignalsBlocked() {
    constexpr timespec kNow{};
    for (const int signal : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending_before_, signal) == 0) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        static_cast<void>(::sigtimedwait(&one, nullptr, &kNow));
      }
    }
  }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
  WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

 private:
  static sigset_t both() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigaddset(&set, SIGPIPE);
    return set;
  }

  SignalsBlocked blocked_;  // restored after the destructor's body
  sigset_t pending_before_{};
};

}  // namespace kymo
