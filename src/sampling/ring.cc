#include "sampling/ring.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <string>

namespace kymo {

Result<std::unique_ptr<Ring>> Ring::create(std::size_t slots, std::size_t rows,
                                           std::size_t columns) {
  const std::size_t stride = columns + 1;  // the time stands first
  std::size_t row_bytes = 0;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(stride, rows * sizeof(std::uint64_t), &row_bytes) ||
      __builtin_mul_overflow(row_bytes + sizeof(SlotHeader), slots, &bytes)) {
    bytes = SIZE_MAX;  // mmap refuses it below
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return system_error("cannot allocate a ring of " + std::to_string(slots) + " slots x " +
                            std::to_string(rows) + " rows x " + std::to_string(columns) +
                            " columns; ask for fewer",
                        errno);
  }
  return std::unique_ptr<Ring>(new Ring(memory, bytes, slots, rows, stride));
}

Ring::Ring(void* memory, std::size_t bytes, std::size_t slots, std::size_t rows, std::size_t stride)
    : memory_(memory),
      bytes_(bytes),
      rows_(rows),
      stride_(stride),
      headers_(static_cast<SlotHeader*>(memory)),
      words_(reinterpret_cast<std::uint64_t*>(headers_ + slots)),
      free_(slots),
      full_(slots) {
  for (std::uint32_t i = 0; i < slots; ++i) {
    new (headers_ + i) SlotHeader;
    free_.push(i);
  }
}

Ring::~Ring() {
  ::munmap(memory_, bytes_);
}

Ring::Slot Ring::slot_at(std::uint32_t index) const {
  return {index, words_ + index * rows_ * stride_};
}

bool Ring::try_take_free(Slot* slot) noexcept {
  std::uint32_t index = 0;
  if (!free_.pop(index)) {
    return false;
  }
  *slot = slot_at(index);
  SlotHeader& header = headers_[index];
  // Rows first, then the new number with release: whoever sees the number sees no old row count.
  header.rows.store(0, std::memory_order_relaxed);
  header.sequence.store(next_sequence_++, std::memory_order_release);
  return true;
}

void Ring::commit_row(const Slot& slot, std::size_t i) noexcept {
  headers_[slot.index].rows.store(i + 1, std::memory_order_release);  // invariant 4
}

void Ring::hand_over(const Slot& slot) noexcept {
  full_.push(slot.index);
}

bool Ring::try_take_full(Slot* slot, Rows* rows) noexcept {
  std::uint32_t index = 0;
  if (!full_.pop(index)) {
    return false;
  }
  *slot = slot_at(index);
  // Relaxed: the queue's pop has acquired everything before the push (invariant 3).
  rows->data = slot->rows;
  rows->count = headers_[index].rows.load(std::memory_order_relaxed);
  rows->stride = stride_;
  return true;
}

void Ring::give_back(const Slot& slot) noexcept {
  free_.push(slot.index);
}

}  // namespace kymo
