#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo {

// A file that only ever shows whole appends: one that fails in the middle, as on a full disk, is
// cut off again, at once or, where the disk refuses even that, before the next append.
//
// Threads: one at a time. Cost: one write(2) an append.
class AppendFile {
 public:
  // Creates the file, which must not exist.
  static Result<AppendFile> create(const std::string& path);
  // Opens a file that is there for reading and appending, and never waits. Errors: not_found;
  // permission_denied: it is a link, no regular file, or another user's.
  static Result<FileDescriptor> open_own(const std::string& path);
  // Goes on with it, cut back to its first `size` bytes: what was read of the descriptor is what is
  // cut, whatever has its name by then. Errors: data_loss where it is shorter.
  static Result<AppendFile> resume(FileDescriptor fd, const std::string& path, std::uint64_t size);

  // Appends all of `text` or nothing. Returns 0 or errno.
  int append(std::string_view text);
  // Tries once more to cut off what a failed append left; nothing where there is nothing to cut
  // off.
  void settle() {
    if (torn_) cut_back_to(size_);
  }
  // Takes back what was appended since the file had `size` bytes.
  void cut_back_to(std::uint64_t size);
  // Nothing more is appended.
  void close() { fd_.reset(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Whether the file has another size than its appends gave it: somebody else has written to it or
  // cut it. Cost: one fstat(2).
  [[nodiscard]] bool changed_by_another() const;

 private:
  explicit AppendFile(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
  std::uint64_t size_ = 0;  // of whole appends
  bool torn_ = false;       // the file is longer than size_
};

}  // namespace kymo
