#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "recorder/metrics/fork_count.h"

namespace kymo {

class CallbackMetric;

// Lets one thread at a time run the callbacks of a registry: the collector of a profiler, or a
// thread that scrapes.
//
// The mutex passes the priority of a waiting collector on to the thread that holds it, so that a
// collector with a real-time priority does not wait for other threads.
//
// A forked child gets a mutex of its own: the parent's may be held by a thread that the child does
// not have.
//
// It also says which callback runs, for those who look why the collector stands still.
class CallbackTurn {
 public:
  CallbackTurn() = default;
  ~CallbackTurn() {
    for (const Mutex* mutex = newest_.load(std::memory_order_acquire); mutex != nullptr;) {
      const std::unique_ptr<const Mutex> done(mutex);
      mutex = done->earlier;
    }
  }
  CallbackTurn(const CallbackTurn&) = delete;
  CallbackTurn& operator=(const CallbackTurn&) = delete;

 private:
  struct Mutex {
    explicit Mutex(const Mutex* before) : earlier(before) {
      pthread_mutexattr_t attributes;
      ::pthread_mutexattr_init(&attributes);
      ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
      ::pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
      if (::pthread_mutex_init(&mutex, &attributes) != 0) {  // a kernel without this protocol
        ::pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
        ::pthread_mutex_init(&mutex, &attributes);
      }
      ::pthread_mutexattr_destroy(&attributes);
    }

    pthread_mutex_t mutex;
    const std::uint64_t forks = fork_count();
    const Mutex* const earlier;  // of the parent: kept, because a thread that forked may hold it
  };

 public:
  // Holds the turn, unless this thread has it already: a callback that takes a sample.
  class Taken {
   public:
    explicit Taken(CallbackTurn& turn)
        : mutex_(turn.mutex()), taken_(mutex_ != nullptr && ::pthread_mutex_lock(mutex_) == 0) {}
    ~Taken() {
      if (taken_) ::pthread_mutex_unlock(mutex_);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    [[nodiscard]] bool taken() const { return taken_; }

   private:
    pthread_mutex_t* const mutex_;
    const bool taken_;
  };

  // The callback that runs from now on; null: none. Only whoever has taken the turn calls this.
  // Cost: a relaxed store. Nothing is read through the pointer before its owner has found it in a
  // list that a mutex guards.
  void note_running(const CallbackMetric* metric) {
    running_.store(metric, std::memory_order_relaxed);
  }
  // Threads: any.
  [[nodiscard]] const CallbackMetric* running() const {
    return running_.load(std::memory_order_relaxed);
  }

 private:
  // The mutex of this process; null if there is no memory for it.
  pthread_mutex_t* mutex() {
    Mutex* newest = newest_.load(std::memory_order_acquire);  // pairs with the exchange
    if (newest->forks != fork_count()) [[unlikely]] {
      std::unique_ptr<Mutex> own(new (std::nothrow) Mutex(newest));
      if (own == nullptr) return nullptr;
      if (newest_.compare_exchange_strong(newest, own.get(), std::memory_order_acq_rel)) {
        newest = own.release();
      }
    }
    return &newest->mutex;
  }

  std::atomic<Mutex*> newest_{new Mutex(nullptr)};
  std::atomic<const CallbackMetric*> running_{nullptr};
};

}  // namespace kymo
