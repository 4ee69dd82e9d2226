#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo {

// Whether this build has zstd (CMake option KYMO_ZSTD).
bool has_zstd() noexcept;

// Returns the error of a build without zstd. `what` is what cannot be done, such as "record to
// run.tsv.zst".
Error no_zstd(std::string_view what);

// Compresses pieces of text. Each piece becomes a zstd frame of its own with a checksum, so that a
// file of frames can be cut after any frame.
//
// Threads: one at a time.
// Cost:    compression level 1. make() allocates the context and the buffer, which are reused.
class FrameCompressor {
 public:
  // Makes a compressor for pieces of at most `max_bytes`. A longer piece makes the buffer grow.
  // Errors: unimplemented without zstd, resource_exhausted.
  static Result<FrameCompressor> make(std::size_t max_bytes);
  FrameCompressor(FrameCompressor&&) noexcept;
  FrameCompressor& operator=(FrameCompressor&&) noexcept;
  ~FrameCompressor();

  // Returns the frame of `text`, which is valid until the next call. Empty if there is no memory.
  std::string_view compress(std::string_view text);

 private:
  struct State;
  explicit FrameCompressor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Decompresses a stream of frames piece by piece.
//
// Threads: one at a time.
// Cost:    limited memory. The window of our own files has 256 KiB. A file of another program can
//          ask for up to 128 MiB, the limit of zstd.
class FrameReader {
 public:
  struct Step {
    std::size_t used = 0;      // bytes of the input
    std::size_t produced = 0;  // bytes of the output
  };

  // Whether a file that begins with these bytes is compressed by zstd.
  static bool begins_frame(std::string_view bytes);
  // Errors: unimplemented without zstd, resource_exhausted.
  static Result<FrameReader> make();
  FrameReader(FrameReader&&) noexcept;
  FrameReader& operator=(FrameReader&&) noexcept;
  ~FrameReader();

  // Decompresses from `in` to `out` until `in` is used up or `out` is full.
  // Errors: data_loss if the input is damaged.
  Result<Step> read(std::string_view in, char* out, std::size_t out_size);
  // Whether the bytes used so far end at the end of a frame.
  [[nodiscard]] bool between_frames() const;

 private:
  struct State;
  explicit FrameReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo
