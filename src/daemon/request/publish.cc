#include "daemon/request/publish.h"

#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace kymo::daemon {

std::optional<Result<void>> work_until(std::function<Result<void>()> work,
                                       std::shared_ptr<const DirectoryClaim> claim,
                                       const DiskWait& wait) {
  constexpr std::chrono::milliseconds kAskEvery{10};
  std::packaged_task<Result<void>()> task([work, claim = std::move(claim)]() mutable {
    Result<void> worked = work();
    claim.reset();  // before the request goes on without its own
    return worked;
  });
  std::future<Result<void>> done = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {  // no thread could be started
    return work();
  }
  while (done.wait_for(kAskEvery) != std::future_status::ready) {
    if (wait.is_over()) return std::nullopt;
  }
  return done.get();
}

}  // namespace kymo::daemon
