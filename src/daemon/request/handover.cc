#include "daemon/request/handover.h"

namespace kymo::daemon {

Handover::Handover(std::string tried, Patience patience)
    : patience_(patience), tried_(std::move(tried)) {}

void Handover::set_tried(std::string tried) {
  const std::lock_guard lock(mutex_);
  tried_ = std::move(tried);
}

std::string Handover::tried() const {
  const std::lock_guard lock(mutex_);
  return tried_;
}

void Handover::keep(std::shared_ptr<void> held) {
  const std::lock_guard lock(mutex_);
  if (!left_ || stage_ != Stage::before) held_.push_back(std::move(held));
}

Result<void> Handover::may_go_on() const {
  const std::lock_guard lock(mutex_);
  if (!left_ || stage_ != Stage::before) return {};
  return Error{Code::unavailable, tried_ + ": it was given up, because a disk did not answer"};
}

Result<void> Handover::enter_runtime() {
  const std::lock_guard lock(mutex_);
  if (left_) {
    return Error{Code::unavailable, tried_ + ": it was given up, because a disk did not answer"};
  }
  stage_ = Stage::in_runtime;
  counting_ = false;
  return {};
}

void Handover::release() {
  std::vector<std::shared_ptr<void>> over;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  over.swap(held_);
}

void Handover::advance(Stage stage) {
  // The caller answers when the request has ended: what it held is free by then.
  if (stage == Stage::ended) release();
  const std::lock_guard lock(mutex_);
  if (left_ && stage_ == Stage::before) return;
  stage_ = stage;
  counting_ = false;
  changed_.notify_all();
}

bool Handover::patience_is_over(bool time_is_over, std::chrono::steady_clock::time_point now) {
  if (!time_is_over && stage_ != Stage::known) return false;
  if (!counting_) since_ = now;
  counting_ = true;
  const auto patience = stage_ == Stage::before       ? patience_.before
                        : stage_ == Stage::in_runtime ? patience_.in_runtime
                                                      : patience_.known;
  return now - since_ >= patience;
}

Handover::Stage Handover::wait(const DiskWait& time) {
  constexpr std::chrono::milliseconds kLookEvery{10};
  std::vector<std::shared_ptr<void>> over;
  std::unique_lock lock(mutex_);
  while (stage_ != Stage::ended) {
    if (patience_is_over(time.is_over(), std::chrono::steady_clock::now())) {
      left_ = true;
      if (stage_ == Stage::before) over.swap(held_);
      break;
    }
    changed_.wait_for(lock, kLookEvery);
  }
  return stage_;
}

}  // namespace kymo::daemon
