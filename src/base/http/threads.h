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

// A thread pool. Threads are started when they are needed, up to a bound, and then kept. Work waits
// only if all threads are busy.
//
// Threads: every member from any thread; start() and shutdown() from one.
class Threads {
 public:
  // `most`: the maximum number of threads. `most_waiting`: the maximum length of the queue.
  Threads(std::size_t most, std::size_t most_waiting) : most_(most), most_waiting_(most_waiting) {}
  ~Threads() { shutdown(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Starts the first thread, so that there is always one.
  // Errors: the system cannot start a thread.
  Result<void> start();
  // Returns false if the queue is full. `work` must not throw.
  bool enqueue(std::function<void()> work);
  // Finishes the queued work, and joins the threads.
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
