#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo::criu {

// What to do if another program changed the images and the process runs on, to be added to a message.
inline constexpr std::string_view kDumpAgain =
    ": find out which program does this, for example a script that cleans up, and dump again";

// The folder into which a dump writes its images. kymod holds it by a descriptor and remembers what was
// written into it. So it notices if another program with the rights of root, such as a script that cleans
// up, removes, replaces or cuts off an image, moves the folder, or mounts something over it.
//
// An image that is replaced by one of the same size is noticed if the file system keeps the number of an inode for good
// (ext4, XFS, Btrfs, tmpfs, NFS and others, but not FUSE, for example). An image that is overwritten in place is not.
//
// Threads:   any. Each member but hold() and wrote() waits for the disk.
// Ownership: holds the folder open.
// Errors:    aborted: another program changed something; the message says what. The system's.
// Cost:      check() makes one statx(2) for each image, and two for the folder.
class HeldImages {
 public:
  // The folder must exist. `later`: the name that it gets when the images are complete. Empty: none.
  static Result<std::shared_ptr<HeldImages>> hold(const std::string& folder,
                                                  const std::string& later = "");
  ~HeldImages();
  HeldImages(const HeldImages&) = delete;
  HeldImages& operator=(const HeldImages&) = delete;

  // Remembers an image that kymod has written. `name`: in the folder, also "pre-1/pages-1.img". `inode` 0: not known. A
  // second call replaces the first one.
  void wrote(const std::string& name, std::uint64_t inode, std::uint64_t bytes);
  // Remembers every file in this folder of it, or in the folder itself if the name is empty.
  Result<void> wrote_all(const std::string& name);
  // Remembers also what CRIU writes itself from now on.
  Result<void> watch();
  // Takes note of what has happened since the last call. Only if this is called often, an image whose size is changed
  // without opening it (truncate(2)) is noticed.
  void look();

  // Whether all of it is as it was written, and the path of the folder still leads to it.
  Result<void> check();
  // The same, and whether the later name is free. Call it before the process may end. Its message says what to do.
  Result<void> check_before_end();
  // Whether the path of the folder leads to it. False also if that is not known.
  [[nodiscard]] bool is_in_place() const { return check_place().ok(); }
  // Whether this path leads to it.
  [[nodiscard]] bool is_at(const std::string& path) const;

  // A path that leads to the folder wherever it is, as long as this object exists.
  [[nodiscard]] std::string own_path() const;

 private:
  struct Image {
    std::uint64_t inode = 0;  // 0: not known
    std::optional<std::uint64_t> bytes;
    bool closed = false;  // CRIU has written it. It opens an image only once
  };

  HeldImages(std::string folder, std::string later, FileDescriptor fd);
  Result<void> check_place() const;
  Result<void> check_name() const;
  Result<void> check_image(const std::string& name, const Image& image) const;
  void note(std::uint32_t what, const std::string& name);
  [[nodiscard]] std::string where_it_is() const;

  const std::string folder_;
  const std::string later_;
  const FileDescriptor fd_;
  const bool keeps_inodes_;  // the file system does
  FileDescriptor events_;    // inotify(7). Set before other threads use this object
  std::mutex looking_;       // of look(); locked before mutex_
  std::mutex mutex_;         // guards what follows
  std::map<std::string, Image> images_;
  std::string changed_;  // the first change that was seen. Empty: none
};

// Whether a file system is mounted over this folder.
bool is_mounted_over(const std::string& folder);

}  // namespace kymo::criu
