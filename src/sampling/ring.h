#pragma once

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

// The ring between collector and writer: `slots` slots of `rows` rows, preallocated.
//
// Invariants:
//  1. A slot's index is in exactly one place: the free queue, the collector's hand, the full queue,
//  or the
//     writer's hand. Whose hand it is in alone touches the slot's rows.
//  2. Slots move free -> collector -> full -> writer -> free. Each queue has room for every slot,
//  so a push
//     never fails.
//  3. Both queues have one producer and one consumer; the queue's release on push and acquire on
//  pop order
//     the rows and the header written before.
//  4. In a slot's header, `rows` is stored with release after each row: whoever loads it with
//  acquire, also
//     from another process that maps the memory, sees that many whole rows.
//  5. `sequence` numbers hand-overs 1, 2, 3, ... in the order of their rows; 0 is a slot never
//  used. A slot
//     in the collector's hand has its number from the moment that it is taken.
//
// Threads: the collector's functions from one thread, the writer's from one other.
class Ring {
 public:
  // One cache line for each slot, apart from the rows. Its layout is read by other processes.
  struct alignas(64) SlotHeader {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> rows{0};
    std::atomic<std::uint64_t> output_bytes{
        0};  // bytes of the output when its rows were handed over
  };
  static_assert(sizeof(SlotHeader) == 64);

  struct Slot {
    std::uint32_t index = 0;
    std::uint64_t* rows = nullptr;
  };

  // Maps and populates the memory. Errors: resource_exhausted.
  static Result<std::unique_ptr<Ring>> create(std::size_t slots, std::size_t rows,
                                              std::size_t columns);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] std::size_t stride() const { return stride_; }  // words a row
  [[nodiscard]] std::size_t rows_per_slot() const { return rows_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // The collector's part.
  [[nodiscard]] bool try_take_free(Slot* slot) noexcept;
  // Row `i` of the slot, of stride() words, is whole.
  void commit_row(const Slot& slot, std::size_t i) noexcept;
  void hand_over(const Slot& slot) noexcept;

  // The writer's part.
  [[nodiscard]] bool try_take_full(Slot* slot, Rows* rows) noexcept;
  void give_back(const Slot& slot) noexcept;

 private:
  using Queue = boost::lockfree::spsc_queue<std::uint32_t>;

  Ring(void* memory, std::size_t bytes, std::size_t slots, std::size_t rows, std::size_t stride);
  [[nodiscard]] Slot slot_at(std::uint32_t index) const;

  void* memory_;
  std::size_t bytes_;
  std::size_t rows_;
  std::size_t stride_;
  SlotHeader* headers_;
  std::uint64_t* words_;
  std::uint64_t next_sequence_ = 1;  // the collector's
  Queue free_;
  Queue full_;
};

}  // namespace kymo
