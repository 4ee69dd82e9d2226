#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The memory of a counter file, as the program writes it and as others read it
// (docs/counter-file.md):
//
//   CounterFileHeader | directory: CounterEntry... | blocks x cells words
//
// All numbers are the machine's own (little-endian). What is fixed at creation is plain; what
// changes afterwards is atomic.
namespace kymo {

inline constexpr std::array<char, 8> kCounterFileMagic = {'K', 'Y', 'M', 'O', 'C', 'N', 'T', 'R'};
inline constexpr std::uint32_t kCounterFileVersion = 1;
inline constexpr std::size_t kDirectoryBytes = 512 * 1024;

struct alignas(64) CounterFileHeader {
  std::array<char, 8> magic{};
  std::uint32_t format_version = 0;
  std::uint32_t pid = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_capacity = 0;
  std::uint64_t blocks_offset = 0;
  std::uint64_t blocks = 0;
  std::uint64_t cells = 0;  // of a block
  std::uint64_t total_bytes = 0;
  // Entries that end before here are whole.
  alignas(64) std::atomic<std::uint64_t> directory_bytes{0};
  std::atomic<std::uint64_t> blocks_used{0};
  std::atomic<std::uint64_t> unlisted{0};  // metrics that the directory had no room for
};
static_assert(sizeof(CounterFileHeader) == 128);

// A metric. Behind it: what each of its cells held when it was registered (`cells` words, to be
// taken off), then its name, help and fields as text, then padding to a multiple of 8.
//
//   text  = u16 length, bytes
//   texts = name help, then for each field: name, u16 number of values, values
struct CounterEntry {
  std::uint32_t bytes = 0;  // with all that is behind it
  std::uint32_t first_cell = 0;
  std::uint32_t cells = 0;
  std::uint16_t unit = 0;  // kymo::Unit
  std::uint16_t fields = 0;
  std::atomic<std::uint64_t> withdrawn{0};  // not 0: its registry is gone
};
static_assert(sizeof(CounterEntry) == 24);

}  // namespace kymo
