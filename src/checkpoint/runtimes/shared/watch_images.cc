#include "checkpoint/runtimes/shared/watch_images.h"

#include <chrono>
#include <utility>

#include "checkpoint/criu/drive/held_images.h"

namespace kymo::runtime {

Result<std::unique_ptr<probe::DirectoryBytesWatcher>> watch_images(
    const std::string& images_dir, const Observer& observer,
    std::shared_ptr<criu::HeldImages> held) {
  return probe::DirectoryBytesWatcher::start(
      images_dir,
      [&observer](std::uint64_t total) {
        if (observer.image_bytes) {
          observer.image_bytes(total);
        }
      },
      std::chrono::milliseconds(1),
      [&observer](std::uint64_t total, std::uint64_t pages) {
        if (observer.moved) {
          observer.moved(total, pages, false);
        }
      },
      [held = std::move(held)] {
        if (held) held->look();
      });
}

}  // namespace kymo::runtime
