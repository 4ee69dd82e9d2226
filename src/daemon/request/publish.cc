#include "daemon/request/publish.h"

#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace kymo::daemon {

std::optional<Result<void>> publish_until(const CheckpointDir& dir,
                                          const std::function<bool()>& is_over) {
  constexpr std::chrono::milliseconds kAskEvery{10};
  std::packaged_task<Result<void>()> work([dir] { return publish_images(dir); });
  std::future<Result<void>> done = work.get_future();
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {  // no thread could be started
    return publish_images(dir);
  }
  while (done.wait_for(kAskEvery) != std::future_status::ready) {
    if (is_over()) return std::nullopt;
  }
  return done.get();
}

}  // namespace kymo::daemon
