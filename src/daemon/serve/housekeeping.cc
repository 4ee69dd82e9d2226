#include "daemon/serve/housekeeping.h"

#include <utility>

#include "base/patience.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::milliseconds kEvery{1000};

}  // namespace

Housekeeping::Housekeeping(std::function<void()> work)
    : work_(std::move(work)),
      thread_([this] { look_until(stopping_, ended_, mutex_, changed_, kEvery, work_); }) {}

Housekeeping::~Housekeeping() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool Housekeeping::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return join_or_leave(
      thread_, lock, changed_, [this] { return ended_; }, patience);
}

}  // namespace kymo::daemon
