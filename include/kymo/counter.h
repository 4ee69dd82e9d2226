#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kymo/export.h"

namespace kymo {

// The number of cells, and so of counter columns, that a process can have at once.
inline constexpr std::size_t kMaxCells = 4096;

namespace detail {

// A cell belongs to one thread: only its owner stores to it, the sampler loads it.
using Cell = std::atomic<std::uint64_t>;

// The calling thread's kMaxCells cells, or null before its first add (and again while it exits).
// constinit and initial-exec make reading it one instruction relative to %fs, without the call that
// a shared library's thread-local otherwise costs (measured: 1.1 ns against 5.8 ns an add). dlopen
// of libkymo works because glibc keeps spare static TLS for such small variables. libkymo is never
// unloaded: threads run its code when they end. A plugin that uses it is (docs/library.md).
KYMO_API extern constinit thread_local Cell* thread_cells
    __attribute__((tls_model("initial-exec")));

// Where add() goes when the thread has no cells yet: gives it some, then adds.
KYMO_API void add_without_cells(std::uint32_t cell, std::uint64_t n) noexcept;

}  // namespace detail

// A cumulative count that any thread adds to. A handle: copy it freely, keep it by value.
//
// Threads:   add() from any thread at any time; wait-free, no locked instruction, and threads do
// not
//            share a cache line. Not from a signal handler (an interrupted add would be lost).
// Ownership: the Registry that made it owns the column; do not add after that registry is gone.
// Errors:    none; the value wraps at 2^64.
// Cost:      one add to memory (bench/counter_add); a thread's first add ever maps its cells, about
//            2 us. A thread that exits loses nothing: its cells, values kept, go to the next
//            thread.
class Counter {
 public:
  void add(std::uint64_t n = 1) const noexcept {
    detail::Cell* cells = detail::thread_cells;
    if (cells == nullptr) [[unlikely]] {
      detail::add_without_cells(cell_, n);
      return;
    }
    detail::Cell& cell = cells[cell_];
    // Relaxed: this thread is the cell's only writer, and a sample promises no order between
    // counters.
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

 private:
  friend class Registry;
  friend class CounterFamily;
  explicit Counter(std::uint32_t cell) noexcept : cell_(cell) {}

  std::uint32_t cell_;
};

}  // namespace kymo
