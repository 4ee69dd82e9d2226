#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/zstd_frames.h"
#include "kymo/result.h"

namespace kymo {

// Reads a text file from its beginning, decompressing one that zstd compressed; which it is, its
// first bytes say.
//
// Threads: one at a time. Errors: damage ends the text where it begins, and damage() says so.
// Cost: a buffer of 128 KiB for a compressed file, and zstd's window.
class TextFile {
 public:
  // Errors: of opening and reading; invalid_argument for a directory; unimplemented for a
  // compressed file in a build without zstd.
  static Result<TextFile> open(const std::string& path);
  // As open(), of a regular file alone: never waits for the other end of a pipe.
  static Result<TextFile> open_regular(const std::string& path);
  // Goes on with a descriptor at a file's beginning, and takes its first `most` bytes for all of
  // it. `path`: for messages.
  static Result<TextFile> over(FileDescriptor fd, const std::string& path,
                               std::uint64_t most = UINT64_MAX);

  // Fills up to `size` bytes; fewer, or 0, only where the text ends.
  Result<std::size_t> read(char* out, std::size_t size);
  // The descriptor of a file that is read as it stands and can be read at any place; none of a
  // compressed one, a pipe, or anything else.
  [[nodiscard]] std::optional<int> seekable() const;
  // Goes on reading at this offset. Only of a seekable file.
  Result<void> seek(std::uint64_t offset);
  // Why the text ends before the file does; empty where it does not.
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  TextFile(std::string path, FileDescriptor fd, std::uint64_t most)
      : path_(std::move(path)), fd_(std::move(fd)), unread_(most) {}
  Result<void> sniff();
  Result<std::size_t> read_file(char* out, std::size_t size);
  Result<std::size_t> read_frames(char* out, std::size_t size);

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t unread_;  // bytes of the file that may still be read
  std::optional<FrameReader> frames_;
  std::vector<char> compressed_;  // bytes [used_, filled_) wait
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t decompressed_from_ = 0;  // bytes of the file that are behind `compressed_`
  bool at_end_ = false;
  std::string damage_;
};

}  // namespace kymo
