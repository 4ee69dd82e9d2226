#include "recorder/sampling/ring/ring_reader.h"

#include <algorithm>
#include <optional>

namespace kymo {

namespace {

Error damaged(const std::string& path, const std::string& what) {
  return {Code::invalid_argument, path + " is not a ring that can be read: " + what +
                                      " is damaged; the ring and the recording were not changed"};
}

// If the recorder was killed between its two stores, or one copy is damaged, the other one is valid.
// The first copy is the newer one.
std::optional<std::uint64_t> accepted_word(const RingHeader& header) {
  for (const RingHeader::Accepted& copy : header.accepted) {
    const std::uint64_t position = copy.position.load(std::memory_order_acquire);
    if (copy.check.load(std::memory_order_acquire) ==
        ring_check(position, RingHeader::Accepted::kPurpose)) {
      return position;
    }
  }
  return std::nullopt;
}

// The number of rows in a slot that the output lacks; nothing if its header is damaged.
std::optional<std::uint64_t> rows_left(const SlotHeader& slot, std::uint64_t accepted,
                                       std::uint64_t rows_per_slot) {
  const std::uint64_t rows = slot.rows.load(std::memory_order_acquire);
  if (rows == SlotHeader::kNoRows) {
    return 0;
  }
  const std::uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
  const std::uint64_t count = rows & SlotHeader::kCountMask;
  if (count == 0 || count > rows_per_slot || rows != SlotHeader::rows_word(sequence, count)) {
    return std::nullopt;
  }
  const std::uint64_t begin = slot.output_begin.load(std::memory_order_acquire);
  const std::uint64_t check = slot.output_begin_check.load(std::memory_order_acquire);
  // The second: the recorder was killed after it had stored the beginning, and before the check.
  if (check != ring_check(begin, sequence) &&
      (check != ring_check(SlotHeader::kNotBegun, sequence) || begin < accepted)) {
    return std::nullopt;
  }
  return begin < accepted ? 0 : count;
}

// Whether the output has refused the rows of the slot, and taken none since: the writer had begun to
// write them at the accepted position, and gave them up (Ring::forget_rows()).
bool was_refused(const SlotHeader& slot, std::uint64_t accepted) {
  const std::uint64_t begin = slot.output_begin.load(std::memory_order_acquire);
  return slot.rows.load(std::memory_order_acquire) == SlotHeader::kNoRows &&
         begin != SlotHeader::kNotBegun && begin >= accepted &&
         slot.output_begin_check.load(std::memory_order_acquire) ==
             ring_check(begin, slot.sequence.load(std::memory_order_acquire));
}

}  // namespace

Result<LeftRows> left_rows(const RingMemory& memory, const std::string& path) {
  const RingHeader& header = memory.header();
  const std::optional<std::uint64_t> accepted = accepted_word(header);
  if (!accepted) {
    return damaged(path, "the position of its output");
  }
  LeftRows left{OutputPosition(*accepted), {}, false};
  for (std::size_t i = 0; i < header.slots; ++i) {
    const SlotHeader& slot = memory.slot_headers()[i];
    const auto count = rows_left(slot, *accepted, header.rows_per_slot);
    if (!count) {
      return damaged(path, "the header of slot " + std::to_string(i));
    }
    left.refused = left.refused || was_refused(slot, *accepted);
    if (*count != 0) {
      left.slots.push_back({slot.sequence.load(std::memory_order_acquire),
                            {memory.rows_of(i), static_cast<std::size_t>(*count),
                             static_cast<std::size_t>(header.stride)}});
    }
  }
  std::sort(left.slots.begin(), left.slots.end(),
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
      std::min(header.rows.load(std::memory_order_acquire) & SlotHeader::kCountMask,
               memory.header().rows_per_slot);
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
