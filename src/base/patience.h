#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/own_thread.h"

namespace kymo {

// If a disk takes longer than this to answer a small request, it counts as stalled.
inline constexpr std::chrono::milliseconds kDiskPatience{1000};

// Returns what `ask()` returns, or nothing if that takes longer than `patience`. This is for calls
// that wait for a disk: if the disk does not answer, no timeout and no signal ends such a call.
// Returns nothing also if `ask` throws or no thread can be started.
//
// `ask` runs on a new thread and may outlive this call, so it must own everything that it uses.
// Threads: any; blocks for at most `patience`.
// Cost:    a thread.
template <class Ask>
auto within(std::chrono::milliseconds patience, Ask ask) -> std::optional<decltype(ask())> {
  struct Shared {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<decltype(ask())> answer;  // guarded by mutex
    bool over = false;                      // guarded by mutex
  };
  const auto shared = std::make_shared<Shared>();
  const Result<void> asked = on_own_thread([shared, ask = std::move(ask)]() mutable {
    try {
      auto answer = ask();
      const std::lock_guard lock(shared->mutex);
      shared->answer = std::move(answer);
    } catch (...) {  // no answer
    }
    const std::lock_guard lock(shared->mutex);
    shared->over = true;
    shared->ended.notify_all();
  });
  if (!asked) return std::nullopt;
  std::unique_lock lock(shared->mutex);
  shared->ended.wait_for(lock, patience, [&] { return shared->over; });
  return std::exchange(shared->answer, std::nullopt);
}

// A place that may not answer, such as a disk. While a question that was given up still waits there, no other one is
// asked, so that questions which come every second do not pile up.
//
// Threads:   any.
// Ownership: a question that waits may outlive this object.
class SilentPlace {
 public:
  // Returns what `ask()` returns, or nothing as within() does, or if is_silent().
  template <class Ask>
  auto ask(Ask ask, std::chrono::milliseconds patience = kDiskPatience)
      -> std::optional<decltype(ask())> {
    if (is_silent()) return std::nullopt;
    auto waiting = std::make_shared<bool>();
    const std::weak_ptr<bool> seen = waiting;
    auto answer = within(
        patience, [ask = std::move(ask), waiting = std::move(waiting)]() mutable { return ask(); });
    const std::lock_guard lock(mutex_);
    if (!answer) given_up_ = seen;
    return answer;
  }
  // Whether a question waits that was given up.
  [[nodiscard]] bool is_silent() const {
    const std::lock_guard lock(mutex_);
    return !given_up_.expired();
  }

 private:
  mutable std::mutex mutex_;
  std::weak_ptr<bool> given_up_;  // lives as long as that question
};

// Joins a thread that is about to end. If that takes longer than `patience`, for example because
// the thread waits for a disk, detaches the thread. A detached thread must own everything that it
// uses. Returns whether the thread was joined.
//
// The caller must hold `lock`, and holds it at the return. The lock guards `ended()`. The thread
// must notify `changed` when `ended()` becomes true. No other code may join the thread.
// Threads: any; blocks for at most `patience`.
template <class Ended>
bool join_or_leave(std::thread& thread, std::unique_lock<std::mutex>& lock,
                   std::condition_variable& changed, Ended ended,
                   std::chrono::milliseconds patience = kDiskPatience) {
  if (!changed.wait_for(lock, patience, ended)) {
    thread.detach();
    return false;
  }
  lock.unlock();  // the thread may need the lock once more before it ends
  thread.join();
  lock.lock();
  return true;
}

// Calls look() again and again, `every` so often, until `stopping`, and then a last time. Then sets
// `ended`. For a thread that watches a file and is ended by join_or_leave().
//
// `mutex` guards `stopping` and `ended`, and is not held during look(). Whoever sets `stopping`
// must notify `changed`.
template <class Look>
void look_until(const bool& stopping, bool& ended, std::mutex& mutex,
                std::condition_variable& changed, std::chrono::milliseconds every, Look look) {
  for (bool last = false;;) {
    look();
    std::unique_lock lock(mutex);
    if (last) {
      ended = true;
      changed.notify_all();
      return;
    }
    changed.wait_for(lock, every, [&] { return stopping; });
    last = stopping;
  }
}

}  // namespace kymo
