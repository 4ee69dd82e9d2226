#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kymo::http {

// Threads that are made as they are needed, up to a bound, and stay: work waits only where all are
// busy.
//
// Threads: every member from any thread; shutdown() from one.
class Threads {
 public:
  explicit Threads(std::size_t most) : most_(most) {}
  ~Threads() { shutdown(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  void enqueue(std::function<void()> work);
  // Does what waits, and joins.
  void shutdown();

 private:
  void run();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace kymo::http
