#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kymo/export.h"

namespace kymo {

// The number of cells in a block, and thus the most counter columns that a process can have at
// once.
inline constexpr std::size_t kMaxCells = 4096;

namespace detail {

// A cell belongs to one thread. Only this thread stores to it; the sampler loads it.
using Cell = std::atomic<std::uint64_t>;

// The kMaxCells cells of the calling thread. Null before the thread's first add, and again while
// the thread exits.
// constinit and initial-exec make the read one instruction relative to %fs. Without them, a
// thread-local of a shared library costs a call (measured: 5.8 ns for an add instead of 1.1 ns).
// dlopen of libkymo works, because glibc keeps spare static TLS for small variables like this one.
// libkymo is never unloaded, because threads run its code when they end. A plugin that uses libkymo
// can be unloaded (docs/library.md).
KYMO_API extern constinit thread_local Cell* thread_cells
    __attribute__((tls_model("initial-exec")));

// The slow path of add(): gets cells for a thread that has none, then adds.
KYMO_API void add_without_cells(std::uint32_t cell, std::uint64_t n) noexcept;

// What a counter or a histogram takes: a whole number that is not below zero. A constant with a sign is
// checked by the compiler. Convert a variable with a sign by static_cast<std::uint64_t>(...), after a check.
class Amount {
 public:
  // NOLINTBEGIN(google-explicit-constructor): it stands for the number.
  template <std::unsigned_integral T>
  constexpr Amount(T n) noexcept : n_(n) {}
  template <std::signed_integral T>
  consteval Amount(T n) : n_(static_cast<std::uint64_t>(n)) {
    if (n < 0) a_number_below_zero_is_refused();
  }
  constexpr operator std::uint64_t() const noexcept { return n_; }
  // NOLINTEND(google-explicit-constructor)

 private:
  // Not constexpr: the compiler refuses the constant that leads here, and names this function.
  static void a_number_below_zero_is_refused() {}
  std::uint64_t n_;
};

}  // namespace detail

// A cumulative count that any thread adds to. It is a handle: copy it freely and keep it by value.
//
// Threads:   any thread may call add() at any time, but not from a signal handler (the handler
//            could interrupt an add, and one of the two would be lost). add() is wait-free and uses
//            no locked instruction. Threads do not share a cache line.
// Ownership: the Registry that made it owns the column. Do not call add() after the last copy of
//            this registry is destroyed, also those of profilers, samplers and collectables: the
//            column may then be that of another metric.
// Errors:    none. The value wraps at 2^64.
// Cost:      one add to memory (bench/counter_add). The first add of a thread maps its cells, about
//            2 us. When a thread exits, its cells keep their values and go to the next thread, so
//            no count is lost.
class Counter {
 public:
  void add(detail::Amount n = 1U) const noexcept {
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
  // Does not compile: what is below one would be lost in silence. Nor does a number below zero, which
  // would count as itself + 2^64, or a variable that may be one.
  template <std::floating_point T>
  void add(T) const noexcept {
    static_assert(
        !std::floating_point<T>,
        "kymo::Counter::add: a counter counts whole numbers. Count a smaller unit, such as "
        "microseconds instead of seconds, and write add(static_cast<std::uint64_t>(...)).");
  }

 private:
  friend class Registry;
  friend class CounterFamily;
  explicit Counter(std::uint32_t cell) noexcept : cell_(cell) {}

  std::uint32_t cell_;
};

}  // namespace kymo
