#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::criu {

// How images are kept: as they are, or each as one zstd or lz4 frame in a file of its own, NAME.zst
// or NAME.lz4, which the tools zstd and lz4 unpack to the image that CRIU itself reads.
enum class Compression : std::uint8_t { none, zstd, lz4 };

struct Encoding {
  Compression compression = Compression::none;
  int level = 0;  // 0: the fastest that is usual (1)
};

// "none", "zstd", "lz4", and back.
std::string_view name_of(Compression compression);
std::optional<Compression> compression_of(std::string_view name);
// "", ".zst", ".lz4".
std::string_view suffix_of(Compression compression);
// What the end of a file's name says; `name` loses the suffix.
Compression take_suffix(std::string_view& name);
// Errors: invalid_argument: a level out of range; unimplemented: not in this build.
Result<void> check_encoding(const Encoding& encoding);

// Packs a stream of bytes. Ends in a checksum.
//
// Threads: one at a time. Errors: data_loss from the library; what it gave then is of no use.
class Encoder {
 public:
  // Not for `none`. Errors: those of check_encoding, resource_exhausted.
  static Result<std::unique_ptr<Encoder>> make(const Encoding& encoding);
  virtual ~Encoder() = default;
  // Appends to `out` what has come out by now.
  virtual Result<void> write(std::span<const char> in, std::vector<char>& out) = 0;
  // All that was put in comes out; more may follow.
  virtual Result<void> flush(std::vector<char>& out) = 0;
  virtual Result<void> finish(std::vector<char>& out) = 0;
};

// Unpacks one.
//
// Threads: one at a time. Cost: bounded memory, whatever the input says.
class Decoder {
 public:
  struct Step {
    std::size_t used = 0;
    std::size_t produced = 0;
  };

  // Not for `none`. Errors: unimplemented, resource_exhausted.
  static Result<std::unique_ptr<Decoder>> make(Compression compression);
  virtual ~Decoder() = default;
  // As far as either side lasts. Errors: data_loss: it is no such frame, or damaged.
  virtual Result<Step> read(std::span<const char> in, std::span<char> out) = 0;
  // Whether what was read so far ends where a frame does.
  [[nodiscard]] virtual bool whole() const = 0;
};

// Unpacks a file's content whole. Errors: those of Decoder; data_loss where it is cut short;
// out_of_range beyond `most` bytes.
Result<std::vector<std::byte>> decode_all(Compression compression,
                                          std::span<const std::byte> packed, std::size_t most,
                                          std::string_view name);

}  // namespace kymo::criu
