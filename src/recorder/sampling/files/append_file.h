#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo {

// What somebody else has done to a file that is being written.
enum class FileChange : std::uint8_t {
  none,
  grown,    // its size is above what was appended here
  cut,      // its size is below that: what was appended is gone, at least in part
  closed,   // its descriptor was closed by the program, and its path leads to another file or none:
            // what was appended is there, but nothing more can be appended
  removed,  // it has no name any more, also if another file has its name now: all of it is gone
};

// What was lost by such a change, for a message; nullptr: nothing.
const char* loss_of(FileChange change);

// A file that contains only whole appends. If an append fails in the middle, for example on a full
// disk, the file is truncated to its size before. If the truncation fails, too, the next append
// tries it again first.
//
// A program may close descriptors that it does not know, and its next file then gets the number. So
// each use of the descriptor first checks that it is still that of the file. If it is not, the file is
// opened again, and the descriptor stays open, because it is the program's.
//
// Threads: one at a time.
// Cost:    fcntl(2), fstat(2) and write(2) for each append.
class AppendFile {
 public:
  // Creates the file, which must not exist.
  static Result<AppendFile> create(const std::string& path);

  AppendFile(AppendFile&& other) noexcept = default;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile() { close(); }

  // Appends all of `text` or nothing. Returns 0 or errno; EBADF: FileChange::closed.
  int append(std::string_view text);
  // Tries again to truncate what a failed append left. Does nothing if nothing is left.
  void remove_torn_end() {
    if (torn_) cut_back_to(size_);
  }
  // Removes what was appended since the file had `size` bytes.
  void cut_back_to(std::uint64_t size);
  // Closes the file. Nothing may be appended afterwards.
  void close();
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // What somebody else has done to the file. Cost: fcntl(2) and fstat(2).
  [[nodiscard]] FileChange change() const;
  // Where the file is now, if another program has moved it, as logrotate does. Empty: it has its
  // name, or it is not known where it is. Cost: fcntl(2), fstat(2) and stat(2).
  [[nodiscard]] std::string moved_to() const;

 private:
  AppendFile(FileDescriptor fd, const std::string& path);
  [[nodiscard]] bool has_descriptor() const;

  std::string path_;
  mutable FileDescriptor fd_;
  mutable bool taken_ = false;  // the descriptor is the program's now, and fd_ is empty
  mutable dev_t device_ = 0;    // of the file; a restore elsewhere may change both
  mutable ino_t inode_ = 0;
  std::uint64_t size_ = 0;  // bytes of whole appends
  bool torn_ = false;       // the file is longer than size_
  bool counts_names_;       // the file system does: some say 0 for a file that has its name
};

}  // namespace kymo
