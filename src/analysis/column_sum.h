#pragma once

#include <cstdint>
#include <span>

namespace kymo::analysis {

// Totals of consecutive values of a column. add() joins them in the order of the rows.
struct ColumnSum {
  std::uint64_t values = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::uint64_t falls = 0;     // values that are lower than the one before
  std::uint64_t sum = 0;       // modulo 2^64
  std::uint64_t sum_high = 0;  // how often the sum passed 2^64

  // Adds the totals of the values that follow directly.
  void add(const ColumnSum& next);
  [[nodiscard]] double total() const {
    return static_cast<double>(sum_high) * 0x1p64 + static_cast<double>(sum);
  }
};

// Cost: one pass, four values at a time with AVX2. A second pass if a value falls, and another one
//       if the sum may exceed 2^64.
ColumnSum sum_of(std::span<const std::uint64_t> values);

}  // namespace kymo::analysis
