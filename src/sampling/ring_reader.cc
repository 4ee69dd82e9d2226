#include "sampling/ring_reader.h"

#include <algorithm>

namespace kymo {

std::vector<LeftSlot> left_slots(const RingMemory& memory) {
  const RingHeader& header = memory.header();
  const std::uint64_t accepted = header.accepted.load(std::memory_order_acquire);
  std::vector<LeftSlot> left;
  for (std::size_t i = 0; i < header.slots; ++i) {
    const SlotHeader& slot = memory.slot_headers()[i];
    // Acquire: pairs with Ring's releases, newest store first.
    const std::uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
    const std::uint64_t begin = slot.output_begin.load(std::memory_order_acquire);
    const std::uint64_t rows = slot.rows.load(std::memory_order_acquire);
    if (sequence == 0 || rows == 0 || begin < accepted) {
      continue;
    }
    const auto count = static_cast<std::size_t>(std::min(rows, header.rows_per_slot));
    left.push_back({sequence, {memory.rows_of(i), count, static_cast<std::size_t>(header.stride)}});
  }
  std::sort(left.begin(), left.end(),
            [](const LeftSlot& a, const LeftSlot& b) { return a.sequence < b.sequence; });
  return left;
}

}  // namespace kymo
