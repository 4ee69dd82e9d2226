#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/zstd_frames.h"
#include "kymo/result.h"
#include "recorder/sampling/files/append_file.h"

namespace kymo {

// The rows of a recording on disk: an AppendFile, compressed if its name ends in .zst. Each append
// is then a zstd frame of its own. The file therefore consists of whole frames after each append.
// It is truncated at the end of a frame, as plain text is truncated at the end of a line.
//
// Threads: one at a time.
// Memory:  fixed by create() for appends of at most `max_append` bytes.
class OutputFile {
 public:
  // Creates the file, which must not exist. Errors: those of AppendFile; unimplemented if the name
  // asks for zstd and this build has no zstd.
  static Result<OutputFile> create(const std::string& path, std::size_t max_append);

  // Appends all of `text` or nothing. Returns 0 or errno.
  int append(std::string_view text);
  // Removes what was appended since the file had `size` bytes.
  void cut_back_to(std::uint64_t size) { file_.cut_back_to(size); }
  [[nodiscard]] FileChange change() const { return file_.change(); }
  [[nodiscard]] std::string moved_to() const { return file_.moved_to(); }
  // Bytes on disk.
  [[nodiscard]] std::uint64_t size() const { return file_.size(); }

  void remove_torn_end() { file_.remove_torn_end(); }  // AppendFile::remove_torn_end
  void close() { file_.close(); }                      // AppendFile::close

 private:
  OutputFile(AppendFile file, std::optional<FrameCompressor> compressor)
      : file_(std::move(file)), compressor_(std::move(compressor)) {}
  static Result<std::optional<FrameCompressor>> compressor_for(const std::string& path,
                                                               std::size_t max_append);

  AppendFile file_;
  std::optional<FrameCompressor> compressor_;
};

}  // namespace kymo
