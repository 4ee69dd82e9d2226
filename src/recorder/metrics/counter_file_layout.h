#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The layout of a counter file, which the program writes and others read (docs/formats.md):
//
//   CounterFileHeader | directory: CounterEntry... | blocks x cells words
//
// All numbers have the byte order of the machine (little-endian). Values that are fixed at creation
// are plain. Values that change afterwards are atomic.
namespace kymo {

inline constexpr std::array<char, 8> kCounterFileMagic = {'K', 'Y', 'M', 'O', 'C', 'N', 'T', 'R'};
// In version 1, the sum of a histogram has the unit `count`.
inline constexpr std::uint32_t kCounterFileVersion = 2;
inline constexpr std::size_t kDirectoryBytes = 512 * 1024;

struct alignas(64) CounterFileHeader {
  std::array<char, 8> magic{};
  std::uint32_t format_version = 0;
  std::uint32_t pid = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_capacity = 0;
  std::uint64_t blocks_offset = 0;
  std::uint64_t blocks = 0;
  std::uint64_t cells = 0;  // in a block
  std::uint64_t total_bytes = 0;
  // Entries within the first directory_bytes bytes of the directory are complete.
  alignas(64) std::atomic<std::uint64_t> directory_bytes{0};
  std::atomic<std::uint64_t> blocks_used{0};
  std::atomic<std::uint64_t> unlisted{0};  // metrics that the directory had no room for
};
static_assert(sizeof(CounterFileHeader) == 128);

// One metric. After it follow: what each of its cells held when the metric was registered (`cells`
// words, to be subtracted); its name, help and fields as text; padding to a multiple of 8.
//
//   text  = u16 length, bytes
//   texts = name help, then for each field: name, u16 number of values, values
struct CounterEntry {
  std::uint32_t bytes = 0;  // with all that follows it
  std::uint32_t first_cell = 0;
  std::uint32_t cells = 0;
  std::uint16_t unit = 0;  // kymo::Unit
  std::uint16_t fields = 0;
  std::atomic<std::uint64_t> withdrawn{0};  // not 0: its registry is gone
};
static_assert(sizeof(CounterEntry) == 24);

}  // namespace kymo
