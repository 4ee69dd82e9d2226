#pragma once

#include <cstdint>
#include <span>

namespace kymo::analysis {

// What some consecutive values of a column come to. Pieces add up in the order of their rows.
struct ColumnSum {
  std::uint64_t values = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::uint64_t falls = 0;     // values that are lower than the one before
  std::uint64_t sum = 0;       // modulo 2^64
  std::uint64_t sum_high = 0;  // how often 2^64 went by

  // `next` comes right behind.
  void add(const ColumnSum& next);
  [[nodiscard]] double total() const {
    return static_cast<double>(sum_high) * 0x1p64 + static_cast<double>(sum);
  }
};

// Cost: one pass, four values at a time where the machine can; a second one where values fall.
ColumnSum sum_of(std::span<const std::uint64_t> values);

}  // namespace kymo::analysis
