#include "daemon/request/publish.h"

#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace kymo::daemon {

std::optional<Result<void>> publish_until(const CheckpointDir& dir,
                                          std::shared_ptr<const Claims<std::string>::Claim> claim,
                                          const DiskWait& wait) {
  constexpr std::chrono::milliseconds kAskEvery{10};
  std::packaged_task<Result<void>()> work([dir, claim = std::move(claim)]() mutable {
    Result<void> published = publish_images(dir);
    claim.reset();  // before the request goes on without its own
    return published;
  });
  std::future<Result<void>> done = work.get_future();
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {  // no thread could be started
    return publish_images(dir);
  }
  while (done.wait_for(kAskEvery) != std::future_status::ready) {
    if (wait.is_over()) return std::nullopt;
  }
  return done.get();
}

}  // namespace kymo::daemon
