#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The memory of a ring. The recorder writes it. Recovery and live views read it, also from another
// process and after the recorder was killed (docs/formats.md):
//
//   RingHeader | description (JSON) | padding | SlotHeader x slots | rows
//
// `rows` has slots x rows_per_slot x stride words. All numbers have the byte order of the machine
// (little-endian). Values that are fixed at creation are plain. Values that change afterwards are
// atomic.
//
// Each word that recovery relies on can be checked, so that a damaged ring is noticed before
// anything is changed. A word that changes while rows are recorded is written so that a kill
// between two stores leaves a valid state.
namespace kymo {

inline constexpr std::array<char, 8> kRingMagic = {'K', 'Y', 'M', 'O', 'R', 'I', 'N', 'G'};
inline constexpr std::uint32_t kRingFormatVersion = 2;

// The check of the word `a` for the purpose `b`. A change of either changes it.
inline constexpr std::uint64_t ring_check(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t x = (a * 0x9E3779B97F4A7C15U ^ b) * 0xD6E8FEB86659FD93U;
  return x ^ x >> 32U;
}
// The check of bytes: ring_check() over their 8-byte words. The last may be padded with zeros.
std::uint64_t ring_check(std::string_view bytes);

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
  // recorded, only the writer stores it: the first copy, then the second one. At least one of them
  // is valid at any time.
  struct Accepted {
    static constexpr std::uint64_t kPurpose = 1;
    std::atomic<std::uint64_t> position{0};
    std::atomic<std::uint64_t> check{ring_check(0, kPurpose)};
  };
  alignas(64) std::array<Accepted, 2> accepted;
  std::uint64_t fixed_check = 0;        // of the fields before `accepted`
  std::uint64_t description_check = 0;  // of the description
};
static_assert(sizeof(RingHeader) == 128);
inline constexpr std::size_t kFixedRingBytes = 64;  // of the fields before `accepted`

// Only the thread that has the slot writes here: first the collector, then the writer (ring.h).
struct alignas(64) SlotHeader {
  static constexpr std::uint64_t kNotBegun = UINT64_MAX;

  // The number of committed rows is one word with its check, so that a kill never separates them.
  static constexpr std::uint64_t kCountMask = 0xFFFFFFFFU;
  static constexpr std::uint64_t kNoRows = ring_check(UINT64_MAX, 0) & ~kCountMask;
  // The word for `count` rows of the use `sequence`.
  static constexpr std::uint64_t rows_word(std::uint64_t sequence, std::uint64_t count) {
    return count == 0 ? kNoRows : (ring_check(sequence, count) & ~kCountMask) | count;
  }

  std::atomic<std::uint64_t> sequence{0};    // number of its use, from 1; 0: never used
  std::atomic<std::uint64_t> rows{kNoRows};  // rows_word()
  // The OutputPosition at which the writer began to write its rows. It is stored before its check,
  // which is for the purpose `sequence`.
  std::atomic<std::uint64_t> output_begin{kNotBegun};
  std::atomic<std::uint64_t> output_begin_check{0};
};
static_assert(sizeof(SlotHeader) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace kymo
