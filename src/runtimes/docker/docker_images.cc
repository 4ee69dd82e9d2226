#include "runtimes/docker/docker_images.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/patience.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

// inventory.img is not moved if `given_up` is set by then.
Result<void> move_images(const std::string& images_dir, const std::atomic<bool>& given_up) {
  const fs::path folder = fs::path(images_dir) / kDockersFolder;
  const fs::path last = "inventory.img";
  std::error_code error;
  std::vector<fs::path> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename() != last) names.push_back(entry->path().filename());
  }
  if (error) {
    return Error{Code::failed_precondition,
                 "Docker has made no images in " + folder.string() +
                     ": Docker and kymod must see the same file systems",
                 error.value()};
  }
  names.push_back(last);
  for (const fs::path& name : names) {
    if (name == last && given_up.load(std::memory_order_relaxed)) break;
    fs::rename(folder / name, fs::path(images_dir) / name, error);
    if (error) return system_error("move " + (folder / name).string(), error.value());
  }
  fs::remove(folder, error);
  return {};
}

}  // namespace

Result<void> take_images(const std::string& images_dir, const Command& limits) {
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  std::promise<Result<void>> moved;
  std::future<Result<void>> outcome = moved.get_future();
  std::thread([images_dir, given_up, moved = std::move(moved)]() mutable {
    moved.set_value(move_images(images_dir, *given_up));
  }).detach();
  constexpr std::chrono::milliseconds kLookEvery{50};
  while (outcome.wait_for(kLookEvery) != std::future_status::ready) {
    if (!is_asked(limits.cancel)) continue;
    given_up->store(true, std::memory_order_relaxed);
    return Error{Code::cancelled, "it was ended while the disk of " + images_dir + " stalled"};
  }
  return outcome.get();
}

bool keep_images(const std::string& images_dir) {
  return within(kDiskPatience,
                [images_dir] {
                  std::error_code error;
                  const fs::path folder = fs::path(images_dir) / kDockersFolder;
                  if (!fs::exists(folder / "inventory.img", error)) return static_cast<bool>(error);
                  const std::atomic<bool> given_up{false};
                  static_cast<void>(move_images(images_dir, given_up).ok());
                  return true;
                })
      .value_or(true);
}

void remove_folders(const std::string& images_dir) {
  static_cast<void>(within(kDiskPatience, [images_dir] {
    std::error_code ignored;
    fs::remove_all(fs::path(images_dir) / kDockersFolder, ignored);
    fs::remove_all(fs::path(images_dir) / kEndedFolder, ignored);
    return true;
  }));
}

}  // namespace kymo::runtime
