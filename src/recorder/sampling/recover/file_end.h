#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "kymo/result.h"

namespace kymo {

// Replaces the end of a file from an offset on. The new end is written over the old one. What is
// left of the old end is removed only when all of the new end is on the disk. So the file is never
// shorter than both.
//
// Threads: one at a time.
// Errors:  after an error or a kill, the file has at least its old size. Do the same again.
class FileEnd {
 public:
  // Opens an existing file for reading and writing. Never blocks. Errors: not_found;
  // permission_denied if it is a link, not a regular file, or owned by another user.
  static Result<FileDescriptor> open_own(const std::string& path);
  // Continues the file behind `fd` after its first `kept` bytes. It works on the descriptor and not
  // on the path, because another file may have this name by now. Changes nothing yet.
  // Errors: data_loss if the file is shorter than `kept`.
  static Result<FileEnd> from(FileDescriptor fd, const std::string& path, std::uint64_t kept);

  // Writes the next bytes. Returns 0 or errno.
  int append(std::string_view bytes);
  // Syncs the file, and removes what is left of the old end.
  Result<void> finish();

  // The size of the old end, and its bytes from `offset` on; fewer than `bytes` only at its end.
  [[nodiscard]] std::uint64_t old_bytes() const { return old_size_ - kept_; }
  [[nodiscard]] Result<std::string> read_old(std::uint64_t offset, std::size_t bytes) const;

 private:
  FileEnd(FileDescriptor fd, std::string path, std::uint64_t kept, std::uint64_t old_size)
      : fd_(std::move(fd)),
        path_(std::move(path)),
        kept_(kept),
        old_size_(old_size),
        written_to_(kept) {}

  FileDescriptor fd_;
  std::string path_;
  std::uint64_t kept_;
  std::uint64_t old_size_;
  std::uint64_t written_to_;  // the end of what was written
};

}  // namespace kymo
