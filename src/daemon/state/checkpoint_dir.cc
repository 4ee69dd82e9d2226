#include "daemon/state/checkpoint_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/beneath.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/own_folder.h"
#include "base/patience.h"
#include "base/recording_name.h"
#include "base/sync.h"
#include "checkpoint/criu/drive/image_streamer.h"
#include "checkpoint/criu/images/images.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// Makes the directory with mode 0700, and the folders above it, unless somebody else could lead what is
// written there to another place.
Result<FileDescriptor> make_private_folder(const std::string& path) {
  Result<FileDescriptor> folder = make_own_folder(path);
  if (folder) return folder;
  const Error& error = folder.error();
  if (error.errno_value != 0) {
    return Error{error.code,
                 "make the checkpoint directory " + path + ": " + error.message +
                     advice_on_full_disk(path, error.errno_value),
                 error.errno_value};
  }
  return Error{error.code, "dump into " + path + ": " + error.message +
                               ": choose a directory that only root can change"};
}

Result<void> check_empty(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return Error{Code::invalid_argument, "the checkpoint directory " + path +
                                             " is not a folder: name a new or an empty one"};
  }
  const bool empty = fs::is_empty(path, error);
  if (error) return system_error("look into the checkpoint directory " + path, error.value());
  if (!empty) {
    return Error{Code::failed_precondition,
                 "the checkpoint directory " + path + " is not empty: name a new or an empty one"};
  }
  return {};
}

// CRIU and the runtimes give everybody the right to read their files. The folder that keeps other users
// away from them may get another mode later, or the files may be moved.
void take_rights_of_others(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code ignored;  // some file systems have no modes
    if (file->symlink_status(ignored).type() != fs::file_type::regular) continue;
    fs::permissions(file->path(), fs::perms::owner_read | fs::perms::owner_write, ignored);
  }
}

// Whether one of the files of a recording is there. A full disk may have taken only one, and none of them is replaced.
bool has_part_of_recording(const std::string& path) {
  const std::string stem = recording_stem(path);
  const std::string files[] = {path, stem + ".gaps.tsv", stem + ".meta.json",
                               stack_profile_of(path), wait_profile_of(path)};
  return std::any_of(std::begin(files), std::end(files), [](const std::string& file) {
    std::error_code error;
    return fs::exists(fs::symlink_status(file, error));
  });
}

// Renames a folder, unless something has the new name, even an empty folder. Returns 0 or errno.
int rename_to_free(const std::string& from, const std::string& to) {
  struct stat there {};
  if (lstat(to.c_str(), &there) == 0) return EEXIST;
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system does not know the flag.
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// Removes the images in a folder, and leaves what else is there.
void remove_images_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> images;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    if (name.find(".img") != std::string::npos || name.starts_with("pre-") || name == "parent") {
      images.push_back(entry->path());
    }
  }
  // Remove inventory.img first: without it no reader takes the other files for a checkpoint.
  fs::remove(criu::stored_path(folder + "/inventory.img"), error);
  for (const fs::path& image : images)
    fs::remove_all(image, error);  // a link itself, not its target
}

// Shortens a command, the only entry of a record that can have any length.
void shorten_command(nlohmann::json& record) {
  constexpr std::size_t kMaxCommandBytes = 65536;
  const auto command = record.find("command");
  if (command == record.end() || !command->is_array()) return;
  nlohmann::json kept = nlohmann::json::array();
  std::size_t bytes = 0;
  for (const nlohmann::json& word : *command) {
    if (!word.is_string() || bytes >= kMaxCommandBytes) break;
    kept.push_back(word.get_ref<const std::string&>().substr(0, kMaxCommandBytes - bytes));
    bytes += word.get_ref<const std::string&>().size() + 1;
  }
  kept.push_back("...");
  *command = std::move(kept);
}

}  // namespace

std::string CheckpointDir::next_recording(const std::string& name) const {
  std::string path = recordings() + "/" + name + ".tsv";
  for (int n = 2; has_part_of_recording(path); ++n) {
    path = recordings() + "/" + name + "-" + std::to_string(n) + ".tsv";
  }
  return path;
}

std::string stack_profile_of(const std::string& recording) {
  return recording_stem(recording) + ".pb.gz";
}

std::string wait_profile_of(const std::string& recording) {
  return recording_stem(recording) + ".waits.pb.gz";
}

int number_after(const std::string& text, std::size_t begin) {
  const char* const end = text.data() + text.size();
  int number = 0;
  const auto parsed = std::from_chars(text.data() + begin, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

int highest_number(const std::string& folder, const std::string& name) {
  int highest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string found = entry.path().filename();
    if (found.rfind(name + "-", 0) != 0) continue;
    highest = std::max(highest, number_after(found, name.size() + 1));
  }
  return highest;
}

Result<void> create_checkpoint_dir(const CheckpointDir& dir) {
  const Result<FileDescriptor> made = make_private_folder(dir.path());
  if (!made) return made.error();
  if (Result<void> empty = check_empty(dir.path()); !empty) return empty;
  for (const fs::path folder : {dir.partial_images(), dir.work(), dir.recordings()}) {
    if (mkdirat(made->get(), folder.filename().c_str(), 0700) != 0) {
      Error error = system_error("write into the checkpoint directory " + dir.path(), errno);
      error.message += advice_on_full_disk(dir.path(), error.errno_value);
      clear_unused(dir);
      return error;
    }
  }
  return {};
}

Result<void> check_no_linked_folders(const CheckpointDir& dir) {
  for (const std::string& folder : {dir.images(), dir.work(), dir.recordings()}) {
    const fs::path path(folder);
    const Result<FileDescriptor> opened =
        open_beneath(dir.path(), path.filename(), O_RDONLY | O_DIRECTORY);
    if (!opened && opened.error().code != Code::not_found) return opened.error();
  }
  return {};
}

std::string is_taken(const CheckpointDir& dir) {
  return dir.images() +
         " exists, which another program made: rename or remove it, and kymod lists the "
         "checkpoint as complete";
}

Result<void> publish_images(const CheckpointDir& dir, const criu::HeldImages* held) {
  for (const std::string& folder : {dir.partial_images(), dir.work()}) {
    take_rights_of_others(folder);
  }
  const int failed = rename_to_free(dir.partial_images(), dir.images());
  const std::string complete = "; they are complete in " + dir.partial_images();
  if (failed == EEXIST) {
    return Error{Code::already_exists, "publish the images" + complete + ", but " + is_taken(dir)};
  }
  if (failed != 0) return system_error("publish the images as " + dir.images() + complete, failed);
  if (held == nullptr || held->is_at(dir.images())) return {};
  return Error{Code::aborted, "another program changed the images: " + dir.partial_images() +
                                  " was replaced just before it was renamed to " + dir.images()};
}

Result<void> check_own_images(const std::string& images) {
  constexpr int kMaxParents = 64;
  fs::path folder = images;
  for (int n = 0; n <= kMaxParents; ++n) {
    if (Result<void> own = check_own_files(folder); !own) return own;
    std::error_code error;
    folder = fs::canonical(folder / "parent", error);          // CRIU's name for the images before
    if (error || !fs::is_directory(folder, error)) return {};  // CRIU says what is wrong with it
  }
  return Error{Code::failed_precondition,
               images + ": it has more than " + std::to_string(kMaxParents) +
                   " parent images, or the links to its parent images form a loop"};
}

bool discard_images(const CheckpointDir& dir, const criu::HeldImages* held) {
  criu::wait_for_streamer(dir.partial_images());
  if (held != nullptr) {
    remove_images_in(held->own_path());
    if (!held->is_in_place()) return false;
  }
  if (criu::is_mounted_over(dir.partial_images())) return true;
  std::error_code ignored;
  fs::remove_all(dir.partial_images(), ignored);
  return true;
}

void clear_unused(const CheckpointDir& dir) {
  for (const std::string& folder : {dir.partial_images(), dir.work(), dir.recordings()}) {
    ::rmdir(folder.c_str());
  }
}

bool is_gone(const std::string& path) {
  const auto gone = within(kDiskPatience, [path] {
    std::error_code error;
    return !fs::exists(path, error) && !error;
  });
  return gone.value_or(false);
}

Result<void> write_record(const CheckpointDir& dir, nlohmann::json record) {
  record["format_version"] = report::kRecordVersion;
  nlohmann::json images;
  if (const auto found = record.find(report::kImages); found != record.end()) {
    images = std::move(*found);
    record.erase(found);
  }
  if (json_text(record, 2).size() >= report::kMaxRecordWithoutImages) shorten_command(record);
  if (!images.is_null()) record[report::kImages] = std::move(images);
  std::string text = json_text(record, 2) + '\n';
  if (text.size() > report::kMaxRecordBytes) {
    record.erase(report::kImages);
    text = json_text(record, 2) + '\n';
  }
  return replace_file(dir.record(), text);
}

Result<void> sync_record(const CheckpointDir& dir) {
  for (const std::string& path : {dir.record(), dir.path()}) {
    if (Result<void> synced = sync_path(path); !synced) return synced;
  }
  return {};
}

}  // namespace kymo::daemon
