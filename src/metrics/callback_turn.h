#pragma once

#include <pthread.h>

namespace kymo {

// Lets one thread at a time run the callbacks of a registry: the collector of a profiler, or a
// thread that scrapes.
//
// The mutex passes the priority of a waiting collector on to the thread that holds it, so that a
// collector with a real-time priority does not wait for other threads.
class CallbackTurn {
 public:
  CallbackTurn() {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    ::pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    if (::pthread_mutex_init(&mutex_, &attributes) != 0) {  // a kernel without this protocol
      ::pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
      ::pthread_mutex_init(&mutex_, &attributes);
    }
    ::pthread_mutexattr_destroy(&attributes);
  }
  ~CallbackTurn() { ::pthread_mutex_destroy(&mutex_); }
  CallbackTurn(const CallbackTurn&) = delete;
  CallbackTurn& operator=(const CallbackTurn&) = delete;

  // Holds the turn, unless this thread has it already: a callback that takes a sample.
  class Taken {
   public:
    explicit Taken(CallbackTurn& turn)
        : turn_(turn), taken_(::pthread_mutex_lock(&turn.mutex_) == 0) {}
    ~Taken() {
      if (taken_) ::pthread_mutex_unlock(&turn_.mutex_);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    [[nodiscard]] bool taken() const { return taken_; }

   private:
    CallbackTurn& turn_;
    const bool taken_;
  };

 private:
  pthread_mutex_t mutex_;
};

}  // namespace kymo
