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

// Reads a text file from its beginning. A file that zstd has compressed is decompressed; the first
// bytes of the file show whether it is compressed.
//
// Threads: one at a time.
// Errors:  if the file is damaged, the text ends where the damage begins, and damage() says so.
// Cost:    for a compressed file a buffer of 128 KiB, and zstd's window.
class TextFile {
 public:
  // Opens a regular file, or a pipe without a name (`<(...)`). It never waits for somebody to open
  // the other end of a pipe.
  // Errors: those of opening and reading, invalid_argument for anything else, unimplemented for a
  //         compressed file in a build without zstd.
  static Result<TextFile> open(const std::string& path);
  // Like open(), but only for regular files, so that it never waits for a writer.
  static Result<TextFile> open_regular(const std::string& path);
  // Reads from a descriptor that is at the beginning of a file. Reads at most the first `most`
  // bytes. `path` is for messages.
  static Result<TextFile> over(FileDescriptor fd, const std::string& path,
                               std::uint64_t most = UINT64_MAX);

  // Reads up to `size` bytes, and returns how many. They are fewer only at the end of the text.
  Result<std::size_t> read(char* out, std::size_t size);
  // Returns the descriptor of a regular file that is not compressed, else nothing.
  [[nodiscard]] std::optional<int> seekable() const;
  // Continues to read at this offset. Only for a seekable file.
  Result<void> seek(std::uint64_t offset);
  // Returns why the text ends before the end of the file. Empty if it does not.
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  TextFile(std::string path, FileDescriptor fd, std::uint64_t most)
      : path_(std::move(path)), fd_(std::move(fd)), unread_(most) {}
  Result<void> detect_compression();
  Result<std::size_t> read_file(char* out, std::size_t size);
  Result<std::size_t> read_frames(char* out, std::size_t size);

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t unread_;  // bytes of the file that may still be read
  std::optional<FrameReader> frames_;
  std::vector<char> compressed_;  // bytes [used_, filled_) are not used yet
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t decompressed_from_ = 0;  // offset in the file of the first byte of `compressed_`
  bool at_end_ = false;
  std::string damage_;
};

}  // namespace kymo
