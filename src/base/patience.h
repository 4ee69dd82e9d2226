#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace kymo {

// How long a disk may take to answer a small question before it is taken for one that stalls.
inline constexpr std::chrono::milliseconds kDiskPatience{1000};

// What `ask()` returns, or nothing where that takes longer than `patience`, as a question to a disk
// that does not answer: no deadline and no signal ends such a call.
//
// `ask` runs on a thread of its own and may outlive this call: it must own all that it uses.
// Threads: any; blocks for `patience` at most. Nothing, too, where `ask` throws or no thread is to
// be had.
// Cost: a thread.
template <class Ask>
auto within(std::chrono::milliseconds patience, Ask ask) -> std::optional<decltype(ask())> {
  struct Shared {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<decltype(ask())> answer;  // guarded by mutex
    bool over = false;                      // guarded by mutex
  };
  const auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, ask = std::move(ask)]() mutable {
      try {
        auto answer = ask();
        const std::lock_guard lock(shared->mutex);
        shared->answer = std::move(answer);
      } catch (...) {  // then there is no answer
      }
      const std::lock_guard lock(shared->mutex);
      shared->over = true;
      shared->ended.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  std::unique_lock lock(shared->mutex);
  shared->ended.wait_for(lock, patience, [&] { return shared->over; });
  return std::exchange(shared->answer, std::nullopt);
}

// Joins a thread that is about to end, or leaves it to itself where that takes longer than
// `patience`, as with one that a disk holds up: then it must own all that it uses. Whether it was
// joined.
//
// `lock` is held at the call and at the return; the thread notifies `changed` once `ended()`, which
// the lock guards, is true. Nothing else may join it. Threads: any; blocks for `patience` at most.
template <class Ended>
bool join_or_leave(std::thread& thread, std::unique_lock<std::mutex>& lock,
                   std::condition_variable& changed, Ended ended,
                   std::chrono::milliseconds patience = kDiskPatience) {
  if (!changed.wait_for(lock, patience, ended)) {
    thread.detach();
    return false;
  }
  lock.unlock();  // the thread may still be about to give it back
  thread.join();
  lock.lock();
  return true;
}

}  // namespace kymo
