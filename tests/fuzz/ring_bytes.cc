#include "ring_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "recorder/sampling/ring/ring_layout.h"

namespace kymo::fuzz {
namespace {

constexpr std::uint64_t kMax = 9;  // of slots, of rows in a slot, and of words in a row

std::uint64_t word_at(const std::string& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

void set_word(std::string& bytes, std::size_t offset, std::uint64_t word) {
  std::memcpy(bytes.data() + offset, &word, sizeof word);
}

// Gives the words their checks. A check that is there and is not 0 stays, so that there are also
// damaged rings.
void add_checks(const RingHeader& fixed, std::string& ring) {
  const auto set_missing = [&](std::size_t offset, std::uint64_t check) {
    if (word_at(ring, offset) == 0) set_word(ring, offset, check);
  };
  const std::size_t accepted = kFixedRingBytes;
  set_missing(accepted + 8, ring_check(word_at(ring, accepted), RingHeader::Accepted::kPurpose));
  set_word(ring, offsetof(RingHeader, fixed_check), ring_check(ring.substr(0, kFixedRingBytes)));
  set_word(ring, offsetof(RingHeader, description_check),
           ring_check(ring.substr(sizeof(RingHeader), fixed.description_bytes)));
  for (std::size_t i = 0; i < fixed.slots; ++i) {
    const std::size_t slot = fixed.slots_offset + i * sizeof(SlotHeader);
    const std::uint64_t sequence = word_at(ring, slot);
    const std::uint64_t rows = word_at(ring, slot + 8);
    if (rows <= SlotHeader::kCountMask) {
      set_word(ring, slot + 8, SlotHeader::rows_word(sequence, rows));
    }
    set_missing(slot + 24, ring_check(word_at(ring, slot + 16), sequence));
  }
}

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
  add_checks(header, split.ring);
  return split;
}

}  // namespace kymo::fuzz
