#include "recorder/sampling/ring/ring.h"

#include <atomic>
#include <utility>

namespace kymo {

Ring::Ring(std::shared_ptr<RingMemory> memory)
    : memory_(std::move(memory)),
      headers_(memory_->slot_headers()),
      rows_(memory_->rows_of(0)),
      rows_per_slot_(memory_->header().rows_per_slot),
      stride_(memory_->header().stride),
      held_(memory_->header().slots),
      free_(memory_->header().slots),
      full_(memory_->header().slots) {
  for (std::uint32_t i = 0; i < memory_->header().slots; ++i) {
    free_.push(i);
  }
}

Ring::Slot Ring::slot_at(std::uint32_t index) const {
  // Use the values from the start, not those in the mapped file: another process may have changed
  // the file since (is_intact).
  return {index, rows_ + index * rows_per_slot_ * stride_};
}

bool Ring::try_take_free(Slot* slot) noexcept {
  std::uint32_t index = 0;
  if (!free_.pop(index)) {
    return false;
  }
  *slot = slot_at(index);
  SlotHeader& header = headers_[index];
  held_[index].sequence = next_sequence_;
  // `rows` first, and each store with release: a reader that sees the new `sequence` or the new
  // `output_begin` does not see the old `rows`.
  header.rows.store(SlotHeader::kNoRows, std::memory_order_release);
  header.output_begin.store(SlotHeader::kNotBegun, std::memory_order_release);
  header.output_begin_check.store(ring_check(SlotHeader::kNotBegun, next_sequence_),
                                  std::memory_order_release);
  // An exchange, because it also acquires: no store to the rows may come before the new `sequence`.
  // A live view sees by this number that what it copied is being replaced (peek_rows).
  header.sequence.exchange(next_sequence_++, std::memory_order_acq_rel);
  return true;
}

void Ring::put_row(const Slot& slot, std::size_t i, const std::uint64_t* words) noexcept {
  std::uint64_t* row = slot.rows + i * stride_;
  for (std::size_t word = 0; word < stride_; ++word) {
    // Relaxed: a plain store on x86-64. The release below orders it before the row's count. The
    // exchange in try_take_free() orders it after the slot's new `sequence`.
    std::atomic_ref(row[word]).store(words[word], std::memory_order_relaxed);
  }
  headers_[slot.index].rows.store(SlotHeader::rows_word(held_[slot.index].sequence, i + 1),
                                  std::memory_order_release);  // invariant 4
}

void Ring::hand_over(const Slot& slot) noexcept {
  // Relaxed: the collector stored it itself.
  hand_over(slot,
            headers_[slot.index].rows.load(std::memory_order_relaxed) & SlotHeader::kCountMask);
}

void Ring::hand_over(const Slot& slot, std::size_t rows) noexcept {
  held_[slot.index].rows = rows;
  full_.push(slot.index);
}

bool Ring::try_take_full(Slot* slot, Rows* rows) noexcept {
  std::uint32_t index = 0;
  if (!full_.pop(index)) {
    return false;
  }
  *slot = slot_at(index);
  // The queue's pop has acquired everything before the push (invariant 3).
  rows->data = slot->rows;
  rows->count = held_[index].rows;
  rows->stride = stride_;
  return true;
}

bool Ring::is_intact(const Slot& slot) const noexcept {
  const SlotHeader& header = headers_[slot.index];
  const Pending& held = held_[slot.index];
  return header.sequence.load(std::memory_order_relaxed) == held.sequence &&
         header.rows.load(std::memory_order_relaxed) ==
             SlotHeader::rows_word(held.sequence, held.rows);
}

void Ring::begin_output(const Slot& slot, OutputPosition position) noexcept {
  SlotHeader& header = headers_[slot.index];
  header.output_begin.store(position.word(), std::memory_order_release);
  header.output_begin_check.store(ring_check(position.word(), held_[slot.index].sequence),
                                  std::memory_order_release);
}

void Ring::accept_output(OutputPosition position) noexcept {
  for (RingHeader::Accepted& copy : memory_->header().accepted) {
    copy.position.store(position.word(), std::memory_order_release);
    copy.check.store(ring_check(position.word(), RingHeader::Accepted::kPurpose),
                     std::memory_order_release);
  }
}

void Ring::forget_rows(const Slot& slot) noexcept {
  headers_[slot.index].rows.store(SlotHeader::kNoRows, std::memory_order_release);
}

void Ring::give_back(const Slot& slot) noexcept {
  free_.push(slot.index);
}

}  // namespace kymo
