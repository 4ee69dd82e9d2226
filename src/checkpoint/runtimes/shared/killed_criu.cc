#include "checkpoint/runtimes/shared/killed_criu.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "checkpoint/criu/repair/leftovers.h"

namespace kymo::runtime {

KilledCriuWatch::KilledCriuWatch(std::string log_path) : log_path_(std::move(log_path)) {
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {  // the restore goes on without
  }
}

KilledCriuWatch::~KilledCriuWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void KilledCriuWatch::watch() {
  constexpr std::chrono::seconds kLookEvery{1};
  pid_t before = 0;  // a runtime may be about to see it: only one that stays was killed
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLookEvery, [this] { return over_; })) {
    lock.unlock();
    const pid_t dead = criu::killed_under_its_runtime(log_path_);
    if (dead != 0 && dead == before) {
      static_cast<void>(criu::end_leftover_restore(log_path_, {}).ok());
    }
    before = dead;
    lock.lock();
  }
}

}  // namespace kymo::runtime
