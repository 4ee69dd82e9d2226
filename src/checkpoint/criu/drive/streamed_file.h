#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "checkpoint/criu/images/image_codec.h"
#include "kymo/result.h"

namespace kymo::criu {

class HeldImages;

// The number of bytes that went through an image streamer so far.
struct Streamed {
  std::uint64_t bytes = 0;       // as CRIU writes and reads them
  std::uint64_t page_bytes = 0;  // the part of `bytes` that is memory pages
  std::uint64_t stored = 0;      // in the files in which the images are stored
  // Of the streamer's thread: how long it moved data, and the part of it in which it ran or had no
  // CPU. In the rest it waited for the disk. The second and third are 0 while the thread moves data
  // (ImageStreamer::report()).
  std::uint64_t busy_ns = 0;
  std::uint64_t work_ns = 0;
  std::uint64_t starved_ns = 0;  // the part of work_ns in which it had no CPU; 0 as well
};

// One image on its way through a pipe. CRIU holds the other end of the pipe.
//
// Threads: one.
// Errors:  the system's and those of the codec, with the name of the image. It is no error if CRIU
//          stops reading.
class StreamedFile {
 public:
  explicit StreamedFile(FileDescriptor pipe) : pipe_(std::move(pipe)) {}
  virtual ~StreamedFile() = default;
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;

  [[nodiscard]] int pipe() const { return pipe_.get(); }
  // Moves the data that can be moved without waiting, at most 1 MiB. Returns true if the image is
  // complete.
  virtual Result<bool> pump(Streamed& totals) = 0;
  // Writes everything that was taken from the pipe to the file.
  virtual Result<void> flush(Streamed& totals) = 0;

 private:
  FileDescriptor pipe_;
};

// Moves an image from CRIU to a new file in the folder `dir_fd`. `held` remembers it once it is complete; may be null.
// Where the file system has files without a name (O_TMPFILE), pages get their name only when they are complete. Each
// other file is opened for appending, if splice(2) allows it. So if another program cuts a file off meanwhile, its size
// shows it, and there is no hole in it.
Result<std::unique_ptr<StreamedFile>> capture_file(const std::string& name, FileDescriptor pipe,
                                                   int dir_fd, const Encoding& encoding,
                                                   HeldImages* held = nullptr);

// The file in which an image is stored.
struct StoredImage {
  FileDescriptor file;
  Compression compression = Compression::none;
};
// Errors: not_found.
Result<StoredImage> open_stored(int dir_fd, const std::string& name);

// Moves an image from its file to CRIU.
Result<std::unique_ptr<StreamedFile>> serve_file(const std::string& name, FileDescriptor pipe,
                                                 StoredImage image);

}  // namespace kymo::criu
