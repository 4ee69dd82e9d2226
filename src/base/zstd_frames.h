#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo {

// Whether this build has zstd (CMake option KYMO_ZSTD).
bool has_zstd() noexcept;

// The error of a build without zstd that is asked to `what`, such as "record to run.tsv.zst".
Error no_zstd(std::string_view what);

// Compresses pieces of text, each into a zstd frame of its own that carries a checksum: a file of
// frames can be cut after any of them.
//
// Threads: one at a time. Cost: level 1; the context and the buffer are allocated by make() and
// reused.
class FrameCompressor {
 public:
  // For pieces of at most `max_bytes`; a longer one grows the buffer once.
  // Errors: unimplemented without zstd, resource_exhausted.
  static Result<FrameCompressor> make(std::size_t max_bytes);
  FrameCompressor(FrameCompressor&&) noexcept;
  FrameCompressor& operator=(FrameCompressor&&) noexcept;
  ~FrameCompressor();

  // The frame of `text`, valid until the next call; empty where memory ran out.
  std::string_view compress(std::string_view text);

 private:
  struct State;
  explicit FrameCompressor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Decompresses a stream of frames, piece by piece.
//
// Threads: one at a time. Cost: bounded memory; a window of at most 128 MiB, zstd's own limit,
// where a foreign file asks for it. Ours ask for 256 KiB.
class FrameReader {
 public:
  struct Step {
    std::size_t used = 0;      // bytes of the input
    std::size_t produced = 0;  // bytes of the output
  };

  // Whether a file that begins so is compressed by zstd.
  static bool begins_frame(std::string_view bytes);
  // Errors: unimplemented without zstd, resource_exhausted.
  static Result<FrameReader> make();
  FrameReader(FrameReader&&) noexcept;
  FrameReader& operator=(FrameReader&&) noexcept;
  ~FrameReader();

  // Decompresses from `in` to `out` as far as either lasts. Errors: data_loss for what is no whole
  // frame.
  Result<Step> read(std::string_view in, char* out, std::size_t out_size);
  // Whether the bytes used so far end at the end of a frame.
  [[nodiscard]] bool between_frames() const;

 private:
  struct State;
  explicit FrameReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo
