#include "sampling/ring/ring_reader.h"

#include <algorithm>

namespace kymo {

std::vector<LeftSlot> left_slots(const RingMemory& memory) {
  const RingHeader& header = memory.header();
  const std::uint64_t accepted = header.accepted.load(std::memory_order_acquire);
  std::vector<LeftSlot> left;
  for (std::size_t i = 0; i < header.slots; ++i) {
    const SlotHeader& slot = memory.slot_headers()[i];
    // Acquire: pairs with the releases in Ring. The values are loaded in the reverse order of their
    // stores.
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

namespace {

struct SlotView {
  std::uint64_t sequence = 0;
  std::size_t slot = 0;
};

// Appends the last `most` rows of the slot, or nothing if it was used again meanwhile. Returns
// their number.
std::size_t copy_rows(const RingMemory& memory, const SlotView& view, std::size_t most,
                      std::vector<std::uint64_t>* out) {
  const SlotHeader& header = memory.slot_headers()[view.slot];
  const std::uint64_t committed =
      std::min(header.rows.load(std::memory_order_acquire), memory.header().rows_per_slot);
  const std::size_t count = std::min<std::size_t>(committed, most);
  const std::size_t stride = memory.header().stride;
  std::uint64_t* first = memory.rows_of(view.slot) + (committed - count) * stride;
  const std::size_t before = out->size();
  out->reserve(before + count * stride);
  for (std::size_t i = 0; i < count * stride; ++i) {
    // Acquire: the load of `sequence` below comes after this load. If a word belongs to newer rows,
    // the new `sequence` is seen.
    out->push_back(std::atomic_ref(first[i]).load(std::memory_order_acquire));
  }
  if (header.sequence.load(std::memory_order_relaxed) != view.sequence) {
    out->resize(before);
    return 0;
  }
  return count;
}

}  // namespace

std::vector<std::uint64_t> peek_rows(const RingMemory& memory, std::size_t most) {
  std::vector<SlotView> views;
  for (std::size_t i = 0; i < memory.header().slots; ++i) {
    const auto sequence = memory.slot_headers()[i].sequence.load(std::memory_order_acquire);
    if (sequence != 0) {
      views.push_back({sequence, i});
    }
  }
  std::sort(views.begin(), views.end(),
            [](const SlotView& a, const SlotView& b) { return a.sequence > b.sequence; });
  std::vector<std::vector<std::uint64_t>> slots;  // newest first
  for (const SlotView& view : views) {
    if (most == 0) {
      break;
    }
    most -= copy_rows(memory, view, most, &slots.emplace_back());
  }
  std::vector<std::uint64_t> rows;
  std::reverse(slots.begin(), slots.end());
  for (const std::vector<std::uint64_t>& slot : slots) {
    rows.insert(rows.end(), slot.begin(), slot.end());
  }
  return rows;
}

}  // namespace kymo
