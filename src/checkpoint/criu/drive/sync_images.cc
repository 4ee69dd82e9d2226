#include "checkpoint/criu/drive/sync_images.h"

#include <algorithm>
#include <filesystem>

#include "base/patience.h"
#include "base/sync.h"

namespace kymo::criu {

namespace fs = std::filesystem;

Result<void> sync_images(const std::string& images_dir) {
  std::error_code error;
  fs::recursive_directory_iterator entry(images_dir, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    const fs::file_type type = entry->symlink_status(unknown).type();
    if (type != fs::file_type::regular && type != fs::file_type::directory) continue;
    if (Result<void> synced = sync_path(entry->path()); !synced) return synced;
  }
  if (error) return system_error("list " + images_dir, error.value());
  const fs::path folder(images_dir);
  for (const fs::path& above : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
    if (Result<void> synced = sync_path(above); !synced) return synced;
  }
  return {};
}

Result<void> sync_in_time(const std::string& images_dir,
                          std::chrono::steady_clock::time_point until) {
  constexpr std::chrono::hours kLong{24};
  const auto left =
      std::min<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(), kLong);
  const auto synced = within(std::chrono::ceil<std::chrono::milliseconds>(left),
                             [images_dir] { return sync_images(images_dir); });
  if (!synced) {
    return Error{Code::deadline_exceeded,
                 "the images are not durable: their disk does not answer in time"};
  }
  if (*synced) return {};
  Error error = synced->error();
  error.message.insert(0, "the images are not durable: ");
  return error;
}

}  // namespace kymo::criu
