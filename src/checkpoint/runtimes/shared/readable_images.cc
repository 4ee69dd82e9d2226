#include "checkpoint/runtimes/shared/readable_images.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kModeBits = 07777;

// The names in a folder. A name that comes or goes meanwhile does not matter.
std::vector<std::string> names_in(const FileDescriptor& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get());
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

// CRIU writes such an image only of a process with a user namespace.
bool have_user_namespace(const FileDescriptor& images) {
  for (const std::string& name : names_in(images)) {
    if (name.starts_with("userns-")) return true;
  }
  return false;
}

// Whether somebody who knows the path, and is not the owner, comes as far as the images.
bool can_others_enter(const FileDescriptor& images) {
  struct stat around {};
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  return ::fstatat(images.get(), "..", &around, 0) != 0 || (around.st_mode & kOthers) != 0;
}

bool can_others_read(const FileDescriptor& images) {
  struct stat about {};
  if (::fstat(images.get(), &about) != 0 || (about.st_mode & S_IXOTH) == 0) return false;
  for (const std::string& name : names_in(images)) {
    if (::fstatat(images.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const mode_t needed = S_ISREG(about.st_mode) ? S_IROTH : S_ISDIR(about.st_mode) ? S_IXOTH : 0;
    if ((about.st_mode & needed) != needed) return false;
  }
  return true;
}

Result<FileDescriptor> open_images(const std::string& images_dir) {
  FileDescriptor images(::open(images_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!images.valid()) return system_error("open " + images_dir, errno);
  return images;
}

// Opens a file or folder. What is neither, or is gone, is not valid.
Result<FileDescriptor> open_entry(const FileDescriptor& folder, const std::string& name) {
  struct stat about {};
  if (::fstatat(folder.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
      (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))) {
    return FileDescriptor();
  }
  FileDescriptor entry(::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
  if (!entry.valid() && errno != ENOENT) return system_error("open " + name, errno);
  return entry;
}

// Gives others the right to a file or folder, or takes it away. Returns whether that changed something.
Result<bool> set_right(const FileDescriptor& file, mode_t right, bool given) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return system_error("look at an image", errno);
  if (((about.st_mode & right) != 0) == given) return false;
  const mode_t mode = (about.st_mode & kModeBits & ~right) | (given ? right : 0);
  if (::fchmod(file.get(), mode) != 0) return system_error("change the mode of an image", errno);
  return true;
}

// Takes the rights of others to the folder, and to what is in it.
Result<void> take_from(const FileDescriptor& folder) {
  for (const std::string& name : names_in(folder)) {
    const Result<FileDescriptor> entry = open_entry(folder, name);
    if (!entry) return entry.error();
    struct stat about {};
    if (!entry->valid() || ::fstat(entry->get(), &about) != 0) continue;
    if (S_ISDIR(about.st_mode)) {
      if (Result<void> taken = take_from(*entry); !taken) return taken;
    } else if (const Result<bool> taken = set_right(*entry, S_IROTH, false); !taken) {
      return taken.error();
    }
  }
  const Result<bool> taken = set_right(folder, S_IXOTH, false);
  return taken ? Result<void>() : taken.error();
}

// Whether somebody else could read the images who found them by the path.
Result<void> refuse_open_folder(const std::string& tried, const std::string& images_dir,
                                const FileDescriptor& images) {
  if (!can_others_enter(images)) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": it has a user namespace, whose root must read the images, and kymod gives "
                   "that right only in a folder that others cannot enter: chmod 700 " +
                   fs::path(images_dir).parent_path().string()};
}

}  // namespace

Result<ReadableImages> ReadableImages::of(const std::string& tried, const std::string& images_dir) {
  ReadableImages readable;
  Result<FileDescriptor> images = open_images(images_dir);
  if (!images) return Error{images.error().code, tried + ": " + images.error().message};
  if (!have_user_namespace(*images) || can_others_read(*images)) return readable;
  if (Result<void> may = refuse_open_folder(tried, images_dir, *images); !may) return may.error();
  const Result<void> given = readable.give(*std::move(images));
  if (given) return readable;
  return Error{given.error().code,
               tried + ": let the root of its user namespace read " + images_dir + ": " +
                   given.error().message,
               given.error().errno_value};
}

// Folders hold the images of the rounds of pre-dump.
Result<void> ReadableImages::give(FileDescriptor folder) {
  const std::size_t at = folders_.size();
  folders_.push_back({std::move(folder)});
  for (const std::string& name : names_in(folders_[at].open)) {
    Result<FileDescriptor> entry = open_entry(folders_[at].open, name);
    if (!entry) return entry.error();
    struct stat about {};
    if (!entry->valid() || ::fstat(entry->get(), &about) != 0) continue;
    if (S_ISDIR(about.st_mode)) {
      if (Result<void> given = give(*std::move(entry)); !given) return given;
      continue;
    }
    const Result<bool> changed = set_right(*entry, S_IROTH, true);
    if (!changed) return changed.error();
    if (*changed) folders_[at].files.push_back(name);
  }
  const Result<bool> changed = set_right(folders_[at].open, S_IXOTH, true);
  if (!changed) return changed.error();
  folders_[at].changed = *changed;
  return {};
}

bool ReadableImages::gives(const std::string& images_dir) {
  const Result<FileDescriptor> images = open_images(images_dir);
  return images && have_user_namespace(*images) && !can_others_read(*images);
}

Result<void> ReadableImages::take_back(const std::string& images_dir) {
  const Result<FileDescriptor> images = open_images(images_dir);
  if (images) return take_from(*images);
  return images.error().errno_value == ENOENT ? Result<void>() : images.error();
}

ReadableImages::~ReadableImages() {
  for (const Folder& folder : folders_) {
    if (folder.changed) static_cast<void>(set_right(folder.open, S_IXOTH, false).ok());
    for (const std::string& name : folder.files) {
      const Result<FileDescriptor> file = open_entry(folder.open, name);
      if (file && file->valid()) static_cast<void>(set_right(*file, S_IROTH, false).ok());
    }
  }
}

}  // namespace kymo::runtime
