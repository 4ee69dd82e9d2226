#pragma once

#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/cache_line.h"
#include "kymo/sink.h"

namespace kymo {

// Carries missed ticks from the collector to the writer in fixed memory.
//
// Invariants:
//  1. Ticks noted = ticks in gaps that are taken, queued or open. No tick is lost, even if the
//     queue is full.
//  2. Adjacent ticks that were missed by one cause are one gap. If the queue is full, the open gap
//     grows over what follows: `ticks` stays exact, but the interval then contains captured ticks,
//     too.
//
// Threads: note() and close() from the collector, try_take() from the writer.
class GapQueue {
 public:
  static constexpr std::size_t kCapacity = 1024;

  explicit GapQueue(std::uint64_t interval_ns) : interval_ns_(interval_ns) {}

  // Ticks first .. end-1 were missed.
  void note(std::uint64_t first, std::uint64_t end, MissCause cause) noexcept {
    if (first == end) {
      return;
    }
    const Gap gap{first * interval_ns_, end * interval_ns_, end - first, cause};
    const bool adjacent = open_ && open_->end_ns == gap.start_ns && open_->cause == cause;
    if (open_ && !adjacent) {
      close();
    }
    if (open_) {
      open_->end_ns = gap.end_ns;
      open_->ticks += gap.ticks;
    } else {
      open_ = gap;
    }
  }

  // A row was captured, so the open gap has ended; it stays open while the queue is full.
  void close() noexcept {
    if (open_ && queue_.push(*open_)) {
      open_.reset();
    }
  }

  [[nodiscard]] bool has_open() const noexcept { return open_.has_value(); }
  [[nodiscard]] bool try_take(Gap* gap) noexcept { return queue_.pop(*gap); }

 private:
  // Used by the collector only.
  std::uint64_t interval_ns_;
  std::optional<Gap> open_;
  // The collector writes the queue's first cache line, the writer its second one. The gaps begin on
  // the second one, but few gaps are written.
  alignas(kCacheLine) boost::lockfree::spsc_queue<Gap, boost::lockfree::capacity<kCapacity>> queue_;
};

}  // namespace kymo
