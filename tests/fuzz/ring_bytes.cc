#include "ring_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sampling/ring/ring_layout.h"

namespace kymo::fuzz {
namespace {

constexpr std::size_t kFixedRingBytes = offsetof(RingHeader, accepted);
constexpr std::uint64_t kMax = 9;  // of slots, of rows in a slot, and of words in a row

}  // namespace

RingBytes mend_ring(Bytes data) {
  std::string bytes = text_of(data);
  bytes.resize(std::max(bytes.size(), sizeof(RingHeader)));
  RingHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), kFixedRingBytes);
  header.magic = kRingMagic;
  header.format_version = kRingFormatVersion;
  header.description_bytes =
      std::min<std::uint64_t>(header.description_bytes, bytes.size() - sizeof(RingHeader));
  header.slots_offset = (sizeof(RingHeader) + header.description_bytes + sizeof(SlotHeader) - 1) /
                        sizeof(SlotHeader) * sizeof(SlotHeader);
  header.slots %= kMax;
  header.rows_per_slot %= kMax;
  header.stride = std::max<std::uint64_t>(1, header.stride % kMax);
  header.total_bytes =
      header.slots_offset +
      header.slots * (sizeof(SlotHeader) + header.rows_per_slot * header.stride * 8);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), kFixedRingBytes);
  RingBytes split{bytes, bytes.substr(std::min<std::size_t>(bytes.size(), header.total_bytes))};
  split.ring.resize(header.total_bytes);
  return split;
}

}  // namespace kymo::fuzz
