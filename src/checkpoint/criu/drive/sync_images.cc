#include "checkpoint/criu/drive/sync_images.h"

#include <filesystem>

#include "base/sync.h"

namespace kymo::criu {

namespace fs = std::filesystem;

namespace {

Result<void> sync_all(const std::string& images_dir) {
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

}  // namespace

Result<void> sync_images(const std::string& images_dir) {
  Result<void> synced = sync_all(images_dir);
  if (synced) return {};
  Error error = synced.error();
  error.message.insert(0, "the images are not durable: ");
  return error;
}

}  // namespace kymo::criu
