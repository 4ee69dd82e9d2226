#pragma once

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kymo/sink.h"
#include "sampling/ring_layout.h"
#include "sampling/ring_memory.h"

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
//  4. The words of a row are stored as relaxed atomics, because a live view (peek_rows) may load
//     them at the same time. In a slot's header, `rows` is stored with release after each row:
//     whoever loads it with acquire, also from another process that maps the memory, sees that many
//     whole rows.
//  5. `sequence` numbers hand-overs 1, 2, 3, ... in the order of their rows; 0 is a slot never
//  used. A slot
//     in the collector's hand has its number from the moment that it is taken.
//
// The memory may be a mapped file: 4 to 6 then hold for whoever reads it after the recorder was
// killed. A killed process leaves its stores in program order; a power failure does not.
//
// Threads: the collector's functions from one thread, the writer's from one other.
class Ring {
 public:
  struct Slot {
    std::uint32_t index = 0;
    std::uint64_t* rows = nullptr;  // put_row() writes here and nobody else
  };

  explicit Ring(std::shared_ptr<RingMemory> memory);
  ~Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] std::size_t stride() const { return stride_; }  // words a row
  [[nodiscard]] std::size_t rows_per_slot() const { return rows_per_slot_; }
  [[nodiscard]] RingMemory& memory() { return *memory_; }

  // The collector's part.
  [[nodiscard]] bool try_take_free(Slot* slot) noexcept;
  // Stores row `i` of the slot: stride() words, the row's time first. Rows are stored in order.
  void put_row(const Slot& slot, std::size_t i, const std::uint64_t* words) noexcept;
  void hand_over(const Slot& slot) noexcept;
  // The same for a slot that holds `rows`, whatever its header says by now.
  void hand_over(const Slot& slot, std::size_t rows) noexcept;

  // The writer's part.
  [[nodiscard]] bool try_take_full(Slot* slot, Rows* rows) noexcept;
  // Whether the slot that was taken last still holds what the collector put there. It does not
  // where this process was restored from an image older than the mapped file: the run that went on
  // in between has used the slot for rows of its own.
  [[nodiscard]] bool is_intact(const Slot& slot) const noexcept;
  // Before the first byte of the slot's rows is offered to the output, which stands at `position`.
  void begin_output(const Slot& slot, OutputPosition position) noexcept;
  // Everything before `position` has been accepted by write(2).
  void accept_output(OutputPosition position) noexcept;
  // The output refused the slot's rows: they are counted as missed and must not turn up again.
  void forget_rows(const Slot& slot) noexcept;
  void give_back(const Slot& slot) noexcept;

 private:
  using Queue = boost::lockfree::spsc_queue<std::uint32_t>;

  [[nodiscard]] Slot slot_at(std::uint32_t index) const;

  std::shared_ptr<RingMemory> memory_;
  SlotHeader* headers_;
  std::uint64_t* rows_;  // of slot 0
  std::size_t rows_per_slot_;
  std::size_t stride_;
  std::uint64_t next_sequence_ = 1;  // the collector's
  // What a slot's header should say, in private memory; passed with the slot (invariant 3).
  struct Held {
    std::uint64_t sequence = 0;
    std::uint64_t rows = 0;
  };
  std::vector<Held> held_;
  // In private memory: sized at run time they hold heap pointers, and recovery must not rest on
  // them.
  Queue free_;
  Queue full_;
};

}  // namespace kymo
