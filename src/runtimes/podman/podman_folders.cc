#include "runtimes/podman/podman_folders.h"

#include <system_error>
#include <utility>

namespace kymo::runtime {
namespace {

constexpr std::chrono::seconds kRequestWaits{10};
constexpr std::chrono::seconds kStartWaits{3};
constexpr std::chrono::seconds kThreadWaits{60};
constexpr std::chrono::seconds kAskAgainAfter{5};

}  // namespace

PodmanFolders::~PodmanFolders() {
  over_.ask();
  if (thread_.joinable()) thread_.join();
}

Result<PodmanStore> PodmanFolders::store() {
  {
    const std::lock_guard lock(mutex_);
    if (store_) return *store_;
  }
  return ask(kRequestWaits, nullptr);
}

std::optional<PodmanStore> PodmanFolders::known() {
  {
    const std::lock_guard lock(mutex_);
    if (store_) return store_;
    if (std::exchange(asked_, true)) {
      ask_in_thread();
      return std::nullopt;
    }
  }
  const Result<PodmanStore> found = ask(kStartWaits, nullptr);
  return found ? std::optional(*found) : std::nullopt;
}

Result<PodmanStore> PodmanFolders::ask(std::chrono::milliseconds within,
                                       const Cancellation* cancel) {
  Result<PodmanStore> found = ask_(within, cancel);
  if (found) {
    const std::lock_guard lock(mutex_);
    store_ = *found;
  }
  return found;
}

// The caller has locked the mutex.
void PodmanFolders::ask_in_thread() {
  if (in_thread_ || std::chrono::steady_clock::now() < ask_again_) return;
  if (thread_.joinable()) thread_.join();  // it has asked, and ends
  try {
    thread_ = std::thread([this] {
      static_cast<void>(ask(kThreadWaits, &over_).ok());
      const std::lock_guard lock(mutex_);
      in_thread_ = false;
      ask_again_ = std::chrono::steady_clock::now() + kAskAgainAfter;
    });
    in_thread_ = true;
  } catch (const std::system_error&) {  // the next call tries again
  }
}

}  // namespace kymo::runtime
