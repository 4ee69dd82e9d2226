#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kymo::daemon {

// Calls `work` each second on a thread of its own, because it may wait for a disk.
//
// Threads: one owner. `work` is called by one thread at a time.
class Housekeeping {
 public:
  explicit Housekeeping(std::function<void()> work);
  // Waits until `work` has returned.
  ~Housekeeping();
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Calls `work` a last time and ends the thread. Returns false if that takes longer than `patience`:
  // the thread still runs then, and the program must end without destroying what it uses.
  bool stop(std::chrono::milliseconds patience);

 private:
  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  bool ended_ = false;     // guarded by mutex_
  std::thread thread_;     // the last member, because it uses all others
};

}  // namespace kymo::daemon
