#pragma once

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
  removed,  // it has no name any more, also if another file has its name now: all of it is gone
};

// What was lost by such a change, for a message; nullptr: nothing.
const char* loss_of(FileChange change);

// A file that contains only whole appends. If an append fails in the middle, for example on a full
// disk, the file is truncated to its size before. If the truncation fails, too, the next append
// tries it again first.
//
// Threads: one at a time.
// Cost:    one write(2) for each append.
class AppendFile {
 public:
  // Creates the file, which must not exist.
  static Result<AppendFile> create(const std::string& path);
  // Opens an existing file for reading and appending. Never blocks. Errors: not_found;
  // permission_denied if it is a link, not a regular file, or owned by another user.
  static Result<FileDescriptor> open_own(const std::string& path);
  // Continues the file behind `fd`, truncated to its first `size` bytes. It works on the descriptor
  // and not on the path, because another file may have this name by now. Errors: data_loss if the
  // file is shorter than `size`.
  static Result<AppendFile> resume(FileDescriptor fd, const std::string& path, std::uint64_t size);

  // Appends all of `text` or nothing. Returns 0 or errno.
  int append(std::string_view text);
  // Tries again to truncate what a failed append left. Does nothing if nothing is left.
  void remove_torn_end() {
    if (torn_) cut_back_to(size_);
  }
  // Removes what was appended since the file had `size` bytes.
  void cut_back_to(std::uint64_t size);
  // Closes the file. Nothing may be appended afterwards.
  void close() { fd_.reset(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // What somebody else has done to the file. Cost: one fstat(2).
  [[nodiscard]] FileChange change() const;

 private:
  explicit AppendFile(FileDescriptor fd);

  FileDescriptor fd_;
  std::uint64_t size_ = 0;  // bytes of whole appends
  bool torn_ = false;       // the file is longer than size_
  bool counts_names_;       // the file system does: some say 0 for a file that has its name
};

}  // namespace kymo
