#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kymo/result.h"

namespace kymo::http {

// Threads that are made as they are needed, up to a bound, and stay: work waits only where all are
// busy.
//
// Threads: every member from any thread; start() and shutdown() from one.
class Threads {
 public:
  // Of work that waits there is at most `most_waiting`.
  Threads(std::size_t most, std::size_t most_waiting) : most_(most), most_waiting_(most_waiting) {}
  ~Threads() { shutdown(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Makes the first, so that there is always one. Errors: the system gives none.
  Result<void> start();
  // False: too much waits already. `work` must not throw.
  bool enqueue(std::function<void()> work);
  // Does what waits, and joins.
  void shutdown();

 private:
  void run();

  const std::size_t most_;
  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace kymo::http
