#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/row_kernel.h"

namespace kymo::analysis {

// Parses rows of numbers 64 bytes at a time, in pieces that stay in the first-level cache: finds
// the places of all separators of a piece, turns what lies between them into numbers, four or eight
// at once, and turns the rows into columns. Only then looks whether the piece held anything but
// rows. Knows nothing of damage: it stops before the first line that is not plain, and whoever
// called it looks at that one more closely.
//
// Threads: one at a time. Cost: 128 KiB, made at the first scan; more for rows above 8 KiB.
class RowScan {
 public:
  // `columns` counts the time as one.
  RowScan(std::size_t columns, const RowKernel& kernel) : columns_(columns), kernel_(&kernel) {}

  // Where rows go: value `i` of a row to words[i * stride + row].
  struct Target {
    std::uint64_t* words = nullptr;
    std::size_t stride = 0;
    std::size_t max_rows = 0;
  };
  struct Scanned {
    std::size_t bytes = 0;
    std::size_t rows = 0;
  };
  // Parses lines from the beginning of `text` until one is not `columns` numbers of 1 to 16 digits
  // with a tab between them, its time is below that of the row before (`last_time` for the first),
  // `text` ends in it, or there are `max_rows`. The kMargin bytes before `text` must be readable.
  Scanned scan(std::string_view text, const Target& target, std::uint64_t last_time);

  static constexpr std::size_t kMargin = RowKernel::kMostDigits;

 private:
  struct Piece {
    Scanned scanned;
    bool stopped = false;  // before a line that is not plain
  };
  Piece scan_piece(std::string_view text, const Target& target, std::uint64_t last_time);
  [[nodiscard]] std::size_t plain_rows(std::string_view text, std::size_t rows) const;
  [[nodiscard]] std::size_t rows_in_time(std::size_t rows, std::uint64_t last_time) const;

  std::size_t columns_;
  const RowKernel* kernel_;
  // The places of a piece's separators; the first is that before the piece.
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint64_t> numbers_;  // of its rows, one after the other
};

}  // namespace kymo::analysis
