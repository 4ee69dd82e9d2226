#include "checkpoint/runtimes/shared/memory_images.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/human.h"
#include "base/patience.h"
#include "base/proc/directory_bytes.h"
#include "base/proc/memory_to_dump.h"
#include "checkpoint/criu/drive/sync_images.h"
#include "checkpoint/runtimes/shared/scratch.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char kInventory[] = "inventory.img";

// The images are in a folder of their own inside the folder of the dump, because podman makes a link
// next to them.
std::string path_in(const std::string& base, const std::string& name) {
  return base + "/" + std::string(kImagesPrefix) + name + "/images";
}

// Bytes that this user can still write to the file system. Nothing if it does not say: some network
// file systems do not know their size.
std::optional<std::uint64_t> room_in(const std::string& folder) {
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0 || about.f_blocks == 0) return std::nullopt;
  return std::uint64_t{about.f_bavail} * about.f_frsize;
}

Error no_room(const std::string& where, std::uint64_t bytes, std::uint64_t room) {
  return Error{Code::resource_exhausted, where + " has " + human::bytes(room) +
                                             " left, and the images may need " +
                                             human::bytes(bytes)};
}

// Removes images and what else is in memory, so that nothing stays of an attempt that failed. It removes nothing
// else: another program may have put its own folder here.
void make_way(const fs::path& memory, const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    if (name.find(".img") != std::string::npos || name.starts_with("pre-") ||
        fs::exists(fs::symlink_status(memory / name, ignored))) {
      found.push_back(entry->path());
    }
  }
  for (const fs::path& path : found) fs::remove_all(path, error);
}

// `held` remembers the images that are copied from this folder, and from the folders of the rounds in it.
Result<void> remember(const fs::path& from, criu::HeldImages& held) {
  std::error_code error;
  fs::recursive_directory_iterator entry(from, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code failed;
    if (entry->symlink_status(failed).type() != fs::file_type::regular) continue;
    const std::uint64_t bytes = entry->file_size(failed);
    if (failed) return system_error("look at " + entry->path().string(), failed.value());
    held.wrote(entry->path().lexically_relative(from), 0, bytes);
  }
  return error ? Result<void>(system_error("list " + from.string(), error.value()))
               : Result<void>();
}

// `shown`: the path of `to` for messages.
Result<void> copy_images(const fs::path& from, const fs::path& to, const std::string& shown) {
  const Result<std::uint64_t> bytes = probe::directory_bytes(from);
  if (!bytes) return bytes.error();
  make_way(from, to);
  if (const auto room = room_in(to); room && *room < *bytes) return no_room(shown, *bytes, *room);
  constexpr auto kHow = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path name = entry->path().filename();
    if (name == kInventory) continue;
    fs::copy(entry->path(), to / name, kHow, error);
    if (error) return system_error("write " + shown + "/" + name.string(), error.value());
  }
  if (!error) fs::copy(from / kInventory, to / kInventory, error);
  if (error) return system_error("copy the images to " + shown, error.value());
  return {};
}

}  // namespace

Result<std::string> choose_memory_images(const std::string& name, std::uint64_t bytes,
                                         const std::string& images_dir) {
  // What the estimate leaves out: the images of everything but memory pages, and pages that are written
  // to until then.
  constexpr std::uint64_t kMore = 64UL << 20U;
  const std::uint64_t need = bytes + bytes / 8 + kMore;
  const auto disk = within(kDiskPatience, [images_dir] { return room_in(images_dir); });
  if (disk && *disk && **disk < need) return no_room(images_dir, need, **disk);
  if (const std::uint64_t memory = probe::available_memory(); memory < 2 * need) {
    return no_room("the machine's memory", need, memory / 2);
  }
  std::uint64_t most = 0;
  for (const std::string& base : scratch_bases()) {
    const std::uint64_t room = room_in(fs::path(base).parent_path()).value_or(0);
    if (room >= need) return path_in(base, name);
    most = std::max(most, room);
  }
  return no_room("each memory file system", need, most);
}

std::string find_memory_images(const std::string& name) {
  for (const std::string& base : scratch_bases()) {
    std::string path = path_in(base, name);
    std::error_code error;
    if (fs::symlink_status(path, error).type() == fs::file_type::directory) return path;
  }
  return {};
}

Result<void> make_memory_images(const std::string& memory) {
  Result<void> made = make_scratch(fs::path(memory).parent_path());
  if (made && ::mkdir(memory.c_str(), 0700) != 0) {
    made = system_error("make the folder " + memory, errno);
  }
  return made;
}

bool whole_in_memory(const std::string& memory) {
  std::error_code error;
  return !memory.empty() && fs::exists(fs::path(memory) / kInventory, error);
}

Result<void> bring_images(const std::string& memory, const std::string& images_dir, bool durable,
                          std::shared_ptr<criu::HeldImages> held) {
  if (!whole_in_memory(memory)) return {};
  if (!held) {
    Result<std::shared_ptr<criu::HeldImages>> found = criu::HeldImages::hold(images_dir);
    if (!found) return found.error();
    held = *std::move(found);
  }
  Result<void> done = copy_images(memory, held->own_path(), images_dir);
  if (done && durable) done = criu::sync_images(images_dir);
  if (done) done = remember(memory, *held);
  if (done) done = held->check();
  if (done) drop_memory_images(memory);
  return done;
}

void drop_memory_images(const std::string& memory) {
  if (memory.empty()) return;
  std::error_code error;
  fs::remove(fs::path(memory) / kInventory, error);
  fs::remove_all(fs::path(memory).parent_path(), error);
}

}  // namespace kymo::runtime
