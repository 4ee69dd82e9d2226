#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <vector>

#include "kymo/counter.h"

namespace kymo {

// The buckets of a histogram. The first bucket is [0, first]. Then each doubling up to `last` has
// `per_doubling` buckets of equal width. One last bucket counts all larger values.
struct HistogramBuckets {
  std::uint64_t first = 1;         // a power of two, at least per_doubling
  std::uint64_t last = 1U << 20U;  // a power of two above `first`
  std::uint32_t per_doubling = 1;  // a power of two, at most 16
};

// Buckets for values from `lowest` to `highest`, which become the powers of two around them. A value
// between them is known with an error of at most 1/per_doubling. Values below `lowest` share the
// first bucket, those above `highest` the last one. Registry::histogram() refuses the result if they are
// swapped.
constexpr HistogramBuckets buckets_between(std::uint64_t lowest, std::uint64_t highest,
                                           std::uint32_t per_doubling = 4) {
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 63U;
  const std::uint64_t first = std::max<std::uint64_t>(
      std::bit_floor(std::clamp<std::uint64_t>(lowest, 1, kHighest / 2)), per_doubling);
  const std::uint64_t last = std::bit_ceil(std::min(highest, kHighest));
  if (highest < lowest) return {first, std::min(first, last), per_doubling};
  return {first, std::max(last, std::bit_ceil(first + 1)), per_doubling};
}

// The same for durations, in the unit of the metric. The defaults suit requests that a disk or the
// network takes part in: 512 ns to 17.2 s in 102 buckets, and 4 us to 16.8 s in 90.
constexpr HistogramBuckets buckets_in_ns(
    std::chrono::nanoseconds lowest = std::chrono::microseconds(1),
    std::chrono::nanoseconds highest = std::chrono::seconds(10), std::uint32_t per_doubling = 4) {
  return buckets_between(static_cast<std::uint64_t>(std::max<std::int64_t>(lowest.count(), 1)),
                         static_cast<std::uint64_t>(std::max<std::int64_t>(highest.count(), 1)),
                         per_doubling);
}
constexpr HistogramBuckets buckets_in_us(
    std::chrono::microseconds lowest = std::chrono::microseconds(1),
    std::chrono::microseconds highest = std::chrono::seconds(10), std::uint32_t per_doubling = 4) {
  return buckets_between(static_cast<std::uint64_t>(std::max<std::int64_t>(lowest.count(), 1)),
                         static_cast<std::uint64_t>(std::max<std::int64_t>(highest.count(), 1)),
                         per_doubling);
}
// The same for sizes: 64 B to 1 GiB in 50 buckets.
constexpr HistogramBuckets buckets_in_bytes(std::uint64_t lowest = 64,
                                            std::uint64_t highest = std::uint64_t{1} << 30U,
                                            std::uint32_t per_doubling = 2) {
  return buckets_between(lowest, highest, per_doubling);
}

namespace detail {

// The number of bits that `value` needs. std::bit_width() has another type in older libraries, so that
// a cast of its result makes -Wuseless-cast warn there, and no cast makes -Wconversion warn elsewhere.
constexpr std::uint32_t bits_of(std::uint64_t value) noexcept {
  return 64U - static_cast<std::uint32_t>(std::countl_zero(value));
}

// Finds the bucket of a value from its highest bits, with two conditional moves, no loop and no
// table.
class BucketIndex {
 public:
  // Precondition: the buckets are valid (Registry::histogram checks them).
  constexpr explicit BucketIndex(const HistogramBuckets& buckets)
      : first_bits_(bits_of(buckets.first) - 1),
        sub_bits_(bits_of(buckets.per_doubling) - 1),
        last_((bits_of(buckets.last) - 1 - first_bits_) * buckets.per_doubling + 1) {}

  // The index of the last bucket, which has no bound.
  [[nodiscard]] constexpr std::uint32_t last() const noexcept { return last_; }
  [[nodiscard]] constexpr std::uint32_t of(std::uint64_t value) const noexcept {
    // A bound belongs to the bucket below it: the first bucket is [0, first], not [0, first - 1].
    const std::uint64_t below = value - (value != 0 ? 1 : 0);
    const std::uint64_t first = std::uint64_t{1} << first_bits_;
    const std::uint32_t top = bits_of(below | first) - 1;
    const std::uint64_t sub = (below >> (top - sub_bits_)) & ((std::uint64_t{1} << sub_bits_) - 1);
    const std::uint32_t index =
        1 + ((top - first_bits_) << sub_bits_) + static_cast<std::uint32_t>(sub);
    return below < first ? 0 : std::min(index, last_);
  }
  // The highest value of bucket `index`. Precondition: index < last().
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

// Counts values by size: a count for each bucket, the sum of the values and their number. It is a
// handle: copy it freely and keep it by value. In a recording, each bucket is a column named after
// the values that it counts, such as `wait_us[65-128]`, beside `wait_us_sum` and `wait_us_count`.
// On /metrics it is a histogram.
//
// Threads:   as Counter. A sample may fall between the three additions of one record().
// Ownership: as Counter.
// Errors:    none. The sum wraps at 2^64.
// Cost:      three additions like those of Counter. Bit operations find the bucket
//            (bench/histogram).
class Histogram {
 public:
  void record(detail::Amount value) const noexcept {
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
  // Does not compile, as Counter::add.
  template <std::floating_point T>
  void record(T) const noexcept {
    static_assert(
        !std::floating_point<T>,
        "kymo::Histogram::record: a histogram counts whole numbers. Record a smaller unit, "
        "such as microseconds instead of seconds, and write "
        "record(static_cast<std::uint64_t>(...)).");
  }

 private:
  friend class Registry;
  friend class TimedScope;
  Histogram(std::uint32_t first_cell, detail::BucketIndex index, std::uint32_t unit_ns) noexcept
      : first_cell_(first_cell), index_(index), unit_ns_(unit_ns) {}
  // Records a duration in the unit of the histogram. One of bytes or pages takes none.
  void record_ns(std::uint64_t ns) const noexcept {
    if (unit_ns_ != 0) {
      record(unit_ns_ == 1 ? ns : ns / unit_ns_);
    }
  }
  // Relaxed, as in Counter::add.
  static void add(detail::Cell& cell, std::uint64_t n) noexcept {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::uint32_t first_cell_;
  detail::BucketIndex index_;
  std::uint32_t unit_ns_;  // nanoseconds in its unit; 1 for a count; 0: it is no time
};

}  // namespace kymo
