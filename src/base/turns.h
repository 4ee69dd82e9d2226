#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace kymo {

// Lets a few callers work at once, and a few more wait for that.
//
// Threads:   any.
// Ownership: must live longer than its turns.
class Turns {
 public:
  // A caller works while it has this.
  using Turn = std::unique_ptr<Turns, void (*)(Turns*)>;

  Turns(int at_once, int waiting) : free_(at_once), places_(waiting) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Waits for a turn. Null if too many callers wait already, or if there is no turn within
  // `patience`.
  [[nodiscard]] Turn take(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (free_ == 0 && places_ > 0) {
      --places_;
      freed_.wait_for(lock, patience, [this] { return free_ > 0; });
      ++places_;
    }
    if (free_ == 0) return {nullptr, end};
    --free_;
    return {this, end};
  }

 private:
  static void end(Turns* turns) {
    const std::lock_guard lock(turns->mutex_);
    ++turns->free_;
    turns->freed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
  int places_;  // for callers that wait
};

}  // namespace kymo
