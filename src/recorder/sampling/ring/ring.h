#pragma once

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "kymo/sink.h"
#include "recorder/sampling/ring/ring_layout.h"
#include "recorder/sampling/ring/ring_memory.h"

namespace kymo {

// The ring between collector and writer: `slots` slots of `rows` rows, preallocated.
//
// Invariants:
//  1. The index of a slot is in exactly one place: in the free queue, with the collector, in the
//     full queue, or with the writer. Only the thread that has the index touches the rows of the
//     slot (live views only load them, see 4).
//  2. Slots move free -> collector -> full -> writer -> free. Each queue has room for every slot,
//     so a push never fails.
//  3. Both queues have one producer and one consumer. The release of a push and the acquire of the
//     pop order the rows and the header that were written before.
//  4. The words of a row are stored as relaxed atomics, because a live view (peek_rows) may load
//     them at the same time. In a slot's header, `rows` and its check are one word, which is stored
//     with release after each row. A thread that loads it with acquire sees that many whole rows,
//     also in another process that maps the memory.
//  5. `sequence` numbers the uses of the slots 1, 2, 3, ... in the order of their rows; 0 is a slot
//     that was never used. A slot has its number from the moment when the collector takes it.
//  6. Fields that different threads write are on different cache lines. Of a queue, the producer
//     writes the first line and the consumer the second one. The header of a slot has a line of its
//     own. Only the thread that has the slot writes there, and only the collector writes rows.
//
// The memory may be a mapped file. Invariants 4 and 5 then also hold for a process that reads the
// file after the recorder was killed: a killed process leaves its stores in program order. A power
// failure does not.
//
// Threads: the collector's functions from one thread, the writer's from one other.
class Ring {
 public:
  struct Slot {
    std::uint32_t index = 0;
    std::uint64_t* rows = nullptr;  // only put_row() writes here
  };

  explicit Ring(std::shared_ptr<RingMemory> memory);
  ~Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] std::size_t stride() const { return stride_; }  // words in a row
  [[nodiscard]] std::size_t rows_per_slot() const { return rows_per_slot_; }
  [[nodiscard]] RingMemory& memory() { return *memory_; }

  // Functions of the collector.
  [[nodiscard]] bool try_take_free(Slot* slot) noexcept;
  // Stores row `i` of the slot: stride() words, the row's time first. Rows are stored in order.
  void put_row(const Slot& slot, std::size_t i, const std::uint64_t* words) noexcept;
  void hand_over(const Slot& slot) noexcept;
  // The same, for a slot that holds `rows` rows. The header may say something else by now
  // (is_intact).
  void hand_over(const Slot& slot, std::size_t rows) noexcept;

  // Functions of the writer.
  [[nodiscard]] bool try_take_full(Slot* slot, Rows* rows) noexcept;
  // Whether the slot that was taken last still holds what the collector put there. It does not if
  // this process was restored from an image that is older than the mapped file: the original
  // process went on after the dump and used the slot for its own rows.
  [[nodiscard]] bool is_intact(const Slot& slot) const noexcept;
  // Call it before the first byte of the slot's rows is written to the output, which is at
  // `position`.
  void begin_output(const Slot& slot, OutputPosition position) noexcept;
  // write(2) has accepted everything before `position`.
  void accept_output(OutputPosition position) noexcept;
  // The output refused the slot's rows. They are counted as missed, so recovery must not find them.
  void forget_rows(const Slot& slot) noexcept;
  void give_back(const Slot& slot) noexcept;

 private:
  using Queue = boost::lockfree::spsc_queue<std::uint32_t>;

  [[nodiscard]] Slot slot_at(std::uint32_t index) const;

  // What the header of a slot should say. In private memory; passed on with the slot (invariant 3).
  struct Pending {
    std::uint64_t sequence = 0;
    std::uint64_t rows = 0;
  };

  // Never change after the constructor. The elements of held_ are on the heap; only the collector
  // writes them.
  std::shared_ptr<RingMemory> memory_;
  SlotHeader* headers_;
  std::uint64_t* rows_;  // of slot 0
  std::size_t rows_per_slot_;
  std::size_t stride_;
  std::vector<Pending> held_;
  // Used by the collector only.
  alignas(kCacheLine) std::uint64_t next_sequence_ = 1;
  // In private memory: their size is known only at run time, so they hold heap pointers. Recovery
  // must not depend on them.
  alignas(kCacheLine) Queue free_;  // the writer pushes, the collector pops
  alignas(kCacheLine) Queue full_;  // the collector pushes, the writer pops
};
static_assert(alignof(Ring) == kCacheLine && alignof(SlotHeader) == kCacheLine);

}  // namespace kymo
