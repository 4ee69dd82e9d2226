#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kymo/counter.h"

namespace kymo {

// Buckets whose bounds grow by powers of two: [0, first], then `per_doubling` equal ones for each
// doubling up to `last`, then one for all that is above.
struct HistogramBuckets {
  std::uint64_t first = 1;         // a power of two, at least per_doubling
  std::uint64_t last = 1U << 20U;  // a power of two above `first`
  std::uint32_t per_doubling = 1;  // a power of two, at most 16
};

namespace detail {

// Finds a value's bucket by its highest bits; two conditional moves, no loop, no table.
class BucketIndex {
 public:
  // The buckets must have been checked (Registry::histogram does).
  constexpr explicit BucketIndex(const HistogramBuckets& buckets)
      : first_bits_(static_cast<std::uint32_t>(std::bit_width(buckets.first)) - 1),
        sub_bits_(static_cast<std::uint32_t>(std::bit_width(buckets.per_doubling)) - 1),
        last_((static_cast<std::uint32_t>(std::bit_width(buckets.last)) - 1 - first_bits_) *
                  buckets.per_doubling +
              1) {}

  // The number of buckets less one: the index of the one without a bound.
  [[nodiscard]] constexpr std::uint32_t last() const noexcept { return last_; }
  [[nodiscard]] constexpr std::uint32_t of(std::uint64_t value) const noexcept {
    // Bounds belong to the bucket below them, so that they are the powers of two themselves.
    const std::uint64_t below = value - (value != 0 ? 1 : 0);
    const std::uint64_t first = std::uint64_t{1} << first_bits_;
    const auto top = static_cast<std::uint32_t>(std::bit_width(below | first)) - 1;
    const std::uint64_t sub = (below >> (top - sub_bits_)) & ((std::uint64_t{1} << sub_bits_) - 1);
    const std::uint32_t index =
        1 + ((top - first_bits_) << sub_bits_) + static_cast<std::uint32_t>(sub);
    return below < first ? 0 : std::min(index, last_);
  }
  // The highest value of bucket `index`, which is not the last.
  [[nodiscard]] constexpr std::uint64_t bound(std::uint32_t index) const noexcept {
    const std::uint32_t top = first_bits_ + (index >> sub_bits_);
    const std::uint64_t sub = index & ((1U << sub_bits_) - 1);
    return (std::uint64_t{1} << top) + (sub << (top - sub_bits_));
  }

 private:
  std::uint32_t first_bits_;
  std::uint32_t sub_bits_;
  std::uint32_t last_;
};

}  // namespace detail

// How values are distributed: a count for each bucket, their sum and their number. A handle: copy
// it freely, keep it by value. In a recording each bucket is a column named by the values it
// counts, `wait_us[65-128]`, beside `wait_us_sum` and `wait_us_count`; on /metrics it is a
// histogram.
//
// Threads, ownership: Counter's. A sample may fall between the three additions of one record().
// Errors: none; the sum wraps at 2^64.
// Cost:   three additions of Counter's kind, and the bucket found by bit operations
//         (bench/histogram).
class Histogram {
 public:
  void record(std::uint64_t value) const noexcept {
    const std::uint32_t bucket = index_.of(value);
    const std::uint32_t sum = first_cell_ + index_.last() + 1;
    detail::Cell* cells = detail::thread_cells;
    if (cells == nullptr) [[unlikely]] {
      detail::add_without_cells(first_cell_ + bucket, 1);
      detail::add_without_cells(sum, value);
      detail::add_without_cells(sum + 1, 1);
      return;
    }
    add(cells[first_cell_ + bucket], 1);
    add(cells[sum], value);
    add(cells[sum + 1], 1);
  }

 private:
  friend class Registry;
  Histogram(std::uint32_t first_cell, detail::BucketIndex index) noexcept
      : first_cell_(first_cell), index_(index) {}
  // Relaxed, as in Counter::add.
  static void add(detail::Cell& cell, std::uint64_t n) noexcept {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::uint32_t first_cell_;
  detail::BucketIndex index_;
};

}  // namespace kymo
