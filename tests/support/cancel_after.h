#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/cancellation.h"

namespace kymo::test {

// Cancels so long after it was made, unless it is gone by then.
class CancelAfter {
 public:
  explicit CancelAfter(std::chrono::milliseconds time)
      : thread_([this, time] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, time, [this] { return ended_; })) cancellation_.ask();
        }) {}
  ~CancelAfter() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    over_.notify_all();
    thread_.join();
  }
  CancelAfter(const CancelAfter&) = delete;
  CancelAfter& operator=(const CancelAfter&) = delete;
  [[nodiscard]] const Cancellation* get() const { return &cancellation_; }

 private:
  Cancellation cancellation_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace kymo::test
