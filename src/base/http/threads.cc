#include "base/http/threads.h"

#include <exception>
#include <system_error>
#include <utility>

namespace kymo::http {

Result<void> Threads::start() {
  const std::lock_guard lock(mutex_);
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& none) {
    return system_error("start a thread", none.code().value());
  }
  return {};
}

bool Threads::enqueue(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= most_waiting_) return false;
  waiting_.push_back(std::move(work));
  if (waiting_.size() > idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::exception&) {  // no more threads: the existing ones do the work
    }
  }
  more_.notify_one();
  return true;
}

void Threads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    more_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void Threads::shutdown() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  more_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kymo::http
