#include "base/busy_paths.h"

namespace kymo {

BusyPaths::Work::Work(BusyPaths& all, const std::string& path) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  place_ = all_.paths_.insert(path);
}

BusyPaths::Work::~Work() {
  const std::lock_guard lock(all_.mutex_);
  all_.paths_.erase(place_);
  all_.less_.notify_all();
}

void BusyPaths::wait(const std::string& path) const {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return !paths_.contains(path); });
}

}  // namespace kymo
