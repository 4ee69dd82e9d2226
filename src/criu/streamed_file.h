#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "criu/image_codec.h"
#include "kymo/result.h"

namespace kymo::criu {

// What went through an image streamer so far.
struct Streamed {
  std::uint64_t bytes = 0;       // as CRIU writes and reads them
  std::uint64_t page_bytes = 0;  // those of them that are memory pages
  std::uint64_t stored = 0;      // of the files they are kept in
};

// One image on its way through a pipe whose other end CRIU holds.
//
// Threads: one. Errors: the system's and those of the codec, naming the image; a reader that has
// gone is none.
class StreamedFile {
 public:
  explicit StreamedFile(FileDescriptor pipe) : pipe_(std::move(pipe)) {}
  virtual ~StreamedFile() = default;
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;

  [[nodiscard]] int pipe() const { return pipe_.get(); }
  // Moves what can be moved at once, at most a mebibyte. True: all of it has been.
  virtual Result<bool> pump(Streamed& totals) = 0;
  // What was taken reaches the file.
  virtual Result<void> flush(Streamed& totals) = 0;

 private:
  FileDescriptor pipe_;
};

// From CRIU into a new file of `dir_fd`.
Result<std::unique_ptr<StreamedFile>> capture_file(const std::string& name, FileDescriptor pipe,
                                                   int dir_fd, const Encoding& encoding);

// The file that an image is kept in. Errors: not_found.
struct StoredImage {
  FileDescriptor file;
  Compression compression = Compression::none;
};
Result<StoredImage> open_stored(int dir_fd, const std::string& name);

// From it to CRIU.
Result<std::unique_ptr<StreamedFile>> serve_file(const std::string& name, FileDescriptor pipe,
                                                 StoredImage image);

}  // namespace kymo::criu
