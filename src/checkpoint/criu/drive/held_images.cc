#include "checkpoint/criu/drive/held_images.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/patience.h"

namespace kymo::criu {
namespace {

constexpr unsigned kOfAFolder = STATX_TYPE | STATX_INO | STATX_MNT_ID;
constexpr unsigned kOfAnImage = STATX_TYPE | STATX_INO | STATX_SIZE;

// failures/catalogue.json knows the first words.
Error changed(const std::string& what) {
  return Error{Code::aborted, "another program changed the images: " + what};
}

// Returns 0 or errno. Follows no link at the end of the path. An empty path means the descriptor itself.
int look_at(int fd, const std::string& path, unsigned wanted, struct statx& seen) {
  constexpr int kHow = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  return ::statx(fd, path.c_str(), kHow | (path.empty() ? AT_EMPTY_PATH : 0), wanted, &seen) == 0
             ? 0
             : errno;
}

bool is_same_inode(const struct statx& one, const struct statx& other) {
  return one.stx_ino == other.stx_ino && one.stx_dev_major == other.stx_dev_major &&
         one.stx_dev_minor == other.stx_dev_minor;
}

// Before Linux 5.8 the kernel does not say which mount it is.
bool is_same_mount(const struct statx& one, const struct statx& other) {
  const bool known = (one.stx_mask & other.stx_mask & STATX_MNT_ID) != 0;
  return !known || one.stx_mnt_id == other.stx_mnt_id;
}

bool is_mount_root(const struct statx& seen) {
  return (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Other file systems, such as FUSE or vfat, may give a file another number when they forget about it for a while.
bool keeps_inodes(int fd) {
  constexpr std::array<std::uint32_t, 10> kKnown{
      0xEF53,      // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0x01021994,  // tmpfs
      0x858458F6,  // ramfs
      0x2FC12FC1,  // ZFS
      0xCA451A4E,  // bcachefs
      0xF2F52010,  // F2FS
      0x794C7630,  // overlayfs
      0x6969,      // NFS
  };
  struct statfs about {};
  return ::fstatfs(fd, &about) == 0 &&
         std::find(kKnown.begin(), kKnown.end(), static_cast<std::uint32_t>(about.f_type)) !=
             kKnown.end();
}

// The other files in the folder may come and go.
bool is_image(const std::string& name) {
  return name.find(".img") != std::string::npos;
}

}  // namespace

HeldImages::HeldImages(std::string folder, std::string later, FileDescriptor fd)
    : folder_(std::move(folder)),
      later_(std::move(later)),
      fd_(std::move(fd)),
      keeps_inodes_(keeps_inodes(fd_.get())) {}

Result<std::shared_ptr<HeldImages>> HeldImages::hold(const std::string& folder,
                                                     const std::string& later) {
  FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return system_error("open the folder " + folder, errno);
  return std::shared_ptr<HeldImages>(new HeldImages(folder, later, std::move(fd)));
}

HeldImages::~HeldImages() {
  if (!events_.valid()) return;
  // To close an inotify descriptor, the kernel waits until no CPU looks at its watches any more: 0.1 to 20 ms with Linux
  // 6.18, and about 14 ms in dumps of a small container. A dump is not to wait for this. The descriptor does not keep the
  // disk from being unmounted.
  within(std::chrono::milliseconds(0), [events = std::move(events_)] { return events.valid(); });
}

void HeldImages::wrote(const std::string& name, std::uint64_t inode, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  images_[name] = {inode, bytes, false};
}

Result<void> HeldImages::wrote_all(const std::string& name) {
  std::error_code error;
  const std::string prefix = name.empty() ? "" : name + "/";
  for (std::filesystem::directory_iterator entry(own_path() + "/" + name, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string file = prefix + entry->path().filename().string();
    struct statx seen {};
    if (const int failed = look_at(fd_.get(), file, kOfAnImage, seen); failed != 0) {
      return system_error("look at " + folder_ + "/" + file, failed);
    }
    if (S_ISREG(seen.stx_mode)) wrote(file, seen.stx_ino, seen.stx_size);
  }
  return error ? Result<void>(system_error("list " + folder_ + "/" + name, error.value()))
               : Result<void>();
}

Result<void> HeldImages::watch() {
  // IN_OPEN separates two IN_CLOSE_WRITE of an image, which the kernel would otherwise report as one.
  constexpr std::uint32_t kEvents =
      IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_OPEN | IN_CLOSE_WRITE;
  FileDescriptor events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!events.valid() ||
      ::inotify_add_watch(events.get(), own_path().c_str(), kEvents | IN_ONLYDIR) < 0) {
    return system_error("watch the folder " + folder_, errno);
  }
  events_ = std::move(events);
  return {};
}

void HeldImages::look() {
  if (!events_.valid()) return;
  const std::lock_guard looking(looking_);
  alignas(inotify_event) std::array<char, 16 * (sizeof(inotify_event) + NAME_MAX + 1)> buffer;
  for (;;) {
    const ssize_t n = ::read(events_.get(), buffer.data(), buffer.size());
    if (n <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if (event.len > 0) note(event.mask, buffer.data() + at + sizeof event);
      at += sizeof event + event.len;
    }
  }
}

// Notes an event of inotify(7).
void HeldImages::note(std::uint32_t what, const std::string& name) {
  if ((what & IN_ISDIR) != 0 || !is_image(name)) return;
  struct statx seen {};
  const bool closed = (what & IN_CLOSE_WRITE) != 0;
  const bool there = closed && look_at(fd_.get(), name, kOfAnImage, seen) == 0;
  const std::lock_guard lock(mutex_);
  const auto known = images_.find(name);
  std::string change;
  if ((what & (IN_CREATE | IN_MOVED_TO)) != 0) {
    if (known != images_.end()) change = "was replaced by another file";
    images_.try_emplace(name);
  } else if ((what & (IN_DELETE | IN_MOVED_FROM)) != 0) {
    change = "was removed";
  } else if (closed && known != images_.end()) {
    if (known->second.closed) change = "was opened for writing by another program";
    known->second.closed = true;
    if (there) known->second = {seen.stx_ino, seen.stx_size, true};
  }
  if (!change.empty() && changed_.empty()) changed_ = folder_ + "/" + name + " " + change;
}

Result<void> HeldImages::check() {
  if (Result<void> place = check_place(); !place) return place;
  look();
  std::map<std::string, Image> images;
  {
    const std::lock_guard lock(mutex_);
    if (!changed_.empty()) return changed(changed_);
    images = images_;
  }
  for (const auto& [name, image] : images) {
    if (Result<void> good = check_image(name, image); !good) return good;
  }
  return {};
}

Result<void> HeldImages::check_image(const std::string& name, const Image& image) const {
  const std::string path = folder_ + "/" + name;
  struct statx seen {};
  const int failed = look_at(fd_.get(), name, kOfAnImage, seen);
  if (failed == ENOENT || failed == ENOTDIR) return changed(path + " was removed");
  if (failed != 0) return system_error("look at " + path, failed);
  const bool other_inode = image.inode != 0 && keeps_inodes_ && seen.stx_ino != image.inode;
  if (!S_ISREG(seen.stx_mode) || other_inode) return changed(path + " was replaced");
  if (image.bytes && seen.stx_size != *image.bytes) {
    return changed(path + " has " + std::to_string(seen.stx_size) + " bytes instead of " +
                   std::to_string(*image.bytes));
  }
  return {};
}

Result<void> HeldImages::check_place() const {
  struct statx ours {};
  struct statx there {};
  if (const int failed = look_at(fd_.get(), "", kOfAFolder, ours); failed != 0) {
    return system_error("look at " + folder_, failed);
  }
  const int failed = look_at(AT_FDCWD, folder_, kOfAFolder, there);
  if (failed == ENOENT || failed == ENOTDIR) {
    return changed(folder_ + " was removed or renamed" + where_it_is());
  }
  if (failed != 0) return system_error("look at " + folder_, failed);
  if (is_same_inode(ours, there) && is_same_mount(ours, there)) return {};
  if (is_mount_root(there)) {
    return changed("a file system was mounted over " + folder_ + ", so unmount it");
  }
  return changed(folder_ + " was replaced by something else" + where_it_is());
}

// The present path of the folder, to be added to a message.
std::string HeldImages::where_it_is() const {
  std::error_code error;
  const std::string now = std::filesystem::read_symlink(own_path(), error);
  return error || now == folder_ || now.ends_with(" (deleted)") ? "" : " (it is now " + now + ")";
}

Result<void> HeldImages::check_before_end() {
  Result<void> good = check_name();
  if (good) good = check();
  if (good || good.error().code != Code::aborted) return good;
  return Error{Code::aborted, good.error().message + std::string(kDumpAgain)};
}

Result<void> HeldImages::check_name() const {
  struct statx seen {};
  const int failed = later_.empty() ? ENOENT : look_at(AT_FDCWD, later_, STATX_TYPE, seen);
  if (failed == 0) {
    return changed(later_ + " exists, which is the name that the images are to get, so rename it");
  }
  if (failed == ENOENT || failed == ENOTDIR) return {};
  return system_error("look at " + later_, failed);
}

bool HeldImages::is_at(const std::string& path) const {
  struct statx ours {};
  struct statx there {};
  return look_at(fd_.get(), "", kOfAFolder, ours) == 0 &&
         look_at(AT_FDCWD, path, kOfAFolder, there) == 0 && is_same_inode(ours, there) &&
         is_same_mount(ours, there);
}

std::string HeldImages::own_path() const {
  return "/proc/self/fd/" + std::to_string(fd_.get());
}

bool is_mounted_over(const std::string& folder) {
  struct statx seen {};
  return look_at(AT_FDCWD, folder, kOfAFolder, seen) == 0 && is_mount_root(seen);
}

}  // namespace kymo::criu
