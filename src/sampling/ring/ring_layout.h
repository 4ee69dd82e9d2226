#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The memory of a ring. The recorder writes it. Recovery and live views read it, also from another
// process and after the recorder was killed (docs/ring-format.md):
//
//   RingHeader | description (JSON) | padding | SlotHeader x slots | rows
//
// `rows` has slots x rows_per_slot x stride words. All numbers have the byte order of the machine
// (little-endian). Values that are fixed at creation are plain. Values that change afterwards are
// atomic.
namespace kymo {

inline constexpr std::array<char, 8> kRingMagic = {'K', 'Y', 'M', 'O', 'R', 'I', 'N', 'G'};
inline constexpr std::uint32_t kRingFormatVersion = 1;

// The position of a recorder in its output: the number of the output file, from 0, and the bytes in
// it. It is one word, so that a kill never leaves half of it.
class OutputPosition {
 public:
  static constexpr unsigned kByteBits = 44;  // at most 16 TiB in a file
  OutputPosition() = default;
  explicit OutputPosition(std::uint64_t word) : word_(word) {}
  OutputPosition(std::uint64_t file, std::uint64_t bytes) : word_(file << kByteBits | bytes) {}

  [[nodiscard]] std::uint64_t file() const { return word_ >> kByteBits; }
  [[nodiscard]] std::uint64_t bytes() const {
    return word_ & ((std::uint64_t{1} << kByteBits) - 1);
  }
  [[nodiscard]] std::uint64_t word() const { return word_; }

 private:
  std::uint64_t word_ = 0;
};

struct alignas(64) RingHeader {
  std::array<char, 8> magic{};  // written last: a ring that is not complete has none
  std::uint32_t format_version = 0;
  std::uint32_t pid = 0;
  std::uint64_t description_bytes = 0;
  std::uint64_t slots_offset = 0;  // of the first SlotHeader, from the start of the memory
  std::uint64_t slots = 0;
  std::uint64_t rows_per_slot = 0;
  std::uint64_t stride = 0;  // words a row
  std::uint64_t total_bytes = 0;
  // write(2) has accepted everything before this position (OutputPosition). While rows are
  // recorded, only the writer stores it. The fields above are fixed at creation.
  alignas(64) std::atomic<std::uint64_t> accepted{0};
};
static_assert(sizeof(RingHeader) == 128);

// Only the thread that has the slot writes here: first the collector, then the writer (ring.h).
struct alignas(64) SlotHeader {
  static constexpr std::uint64_t kNotBegun = UINT64_MAX;

  std::atomic<std::uint64_t> sequence{0};  // number of its use, from 1; 0: never used
  std::atomic<std::uint64_t> rows{0};      // committed rows
  // The OutputPosition at which the writer began to write its rows.
  std::atomic<std::uint64_t> output_begin{kNotBegun};
};
static_assert(sizeof(SlotHeader) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace kymo
