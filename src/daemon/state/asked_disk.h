#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/disk_wait.h"
#include "base/own_thread.h"

namespace kymo::daemon {

// The disk of the images of a dump that is over. It may not answer, and no signal ends a wait for
// it.
//
// Threads:   one.
// Ownership: what was asked and not answered goes on in the background, one thing after the other,
//            and holds `use` until it has ended, such as the claim of the directory: so nobody takes
//            the images for those of another dump.
class AskedDisk {
 public:
  // Each question gets at least kDiskPatience. `cancel` may be null. `deadline_ns`: how long the
  // questions of a request may take; 0: for ever.
  AskedDisk(std::shared_ptr<const void> use, const Cancellation* cancel, std::uint64_t deadline_ns)
      : use_(std::move(use)), cancel_(cancel), deadline_ns_(deadline_ns) {}
  // For a caller that asks again later.
  explicit AskedDisk(std::shared_ptr<const void> use) : AskedDisk(std::move(use), nullptr, 1) {}

  // For questions that no cancellation ends. If the disk was silent, they are only begun.
  void wait_until(std::uint64_t deadline_ns) {
    cancel_ = nullptr;
    deadline_ns_ = deadline_ns;
  }
  [[nodiscard]] DiskWait wait() const { return {cancel_, deadline_ns_}; }
  // Returns what `work()` returns, or nothing if the wait is over before. Then the work goes on as
  // soon as the disk answers, on a thread of its own. So it must own what it uses.
  template <class Work>
  auto ask(Work work) -> std::optional<decltype(work())> {
    using Answer = decltype(work());
    constexpr std::chrono::milliseconds kLookEvery{10};
    const auto soonest = std::chrono::steady_clock::now() + kDiskPatience;
    const DiskWait over = wait();
    auto run = [work = std::move(work), use = use_, turn = turn_]() mutable {
      const std::lock_guard lock(*turn);
      Answer answer = work();
      use.reset();  // before the caller goes on without its own
      return answer;
    };
    std::packaged_task<Answer()> task(run);
    std::future<Answer> answer = task.get_future();
    if (!on_own_thread(std::move(task))) return run();
    while (answer.wait_for(kLookEvery) != std::future_status::ready) {
      if (silent_ || (over.is_over() && std::chrono::steady_clock::now() >= soonest)) {
        silent_ = true;
        return std::nullopt;
      }
    }
    return answer.get();
  }

 private:
  const std::shared_ptr<const void> use_;
  const std::shared_ptr<std::mutex> turn_ = std::make_shared<std::mutex>();
  const Cancellation* cancel_;
  std::uint64_t deadline_ns_;
  bool silent_ = false;  // since then, nobody waits for it
};

}  // namespace kymo::daemon
