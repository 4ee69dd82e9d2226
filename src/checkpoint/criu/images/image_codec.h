#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// How images are stored: unchanged, or each image as one zstd or lz4 frame in a file of its own,
// NAME.zst or NAME.lz4. The tools zstd and lz4 unpack such a file to the image that CRIU reads.
enum class Compression : std::uint8_t { none, zstd, lz4 };

struct Encoding {
  Compression compression = Compression::none;
  int level = 0;  // 1 is the fastest; 0: the default (1)
};

// "none", "zstd", "lz4".
std::string_view name_of(Compression compression);
// "", ".zst", ".lz4".
std::string_view suffix_of(Compression compression);
// Returns the compression that the suffix of a file's name says, and removes the suffix.
Compression take_suffix(std::string_view& name);
// Errors: invalid_argument if the level is out of range.
Result<void> check_encoding(const Encoding& encoding);

// Compresses a stream of bytes to one frame, which ends with a checksum.
//
// Threads: one at a time.
// Errors:  data_loss if the library fails; the output is then of no use.
class Encoder {
 public:
  // Do not call it for `none`. Errors: those of check_encoding(); resource_exhausted.
  static Result<std::unique_ptr<Encoder>> make(const Encoding& encoding);
  virtual ~Encoder() = default;
  // Appends the output that is ready to `out`.
  virtual Result<void> write(std::span<const char> in, std::vector<char>& out) = 0;
  // Appends the output for all input so far. More input may follow.
  virtual Result<void> flush(std::vector<char>& out) = 0;
  virtual Result<void> finish(std::vector<char>& out) = 0;
};

// Decompresses one such frame.
//
// Threads: one at a time.
// Cost:    bounded memory, whatever the input says.
class Decoder {
 public:
  struct Step {
    std::size_t used = 0;
    std::size_t produced = 0;
  };

  // Do not call it for `none`. Errors: resource_exhausted.
  static Result<std::unique_ptr<Decoder>> make(Compression compression);
  virtual ~Decoder() = default;
  // Decompresses until `in` is used up or `out` is full.
  // Errors: data_loss if the input is not such a frame, or is damaged.
  virtual Result<Step> read(std::span<const char> in, std::span<char> out) = 0;
  // Whether the input so far ends at the end of a frame.
  [[nodiscard]] virtual bool whole() const = 0;
};

// Decompresses the whole content of a file. The errors show `name`.
// Errors: those of Decoder; data_loss if the content is cut short; out_of_range if the result has
//         more than `most` bytes.
Result<std::vector<std::byte>> decode_all(Compression compression,
                                          std::span<const std::byte> packed, std::size_t most,
                                          std::string_view name);

}  // namespace kymo::criu
