#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lens/analysis/row_kernel.h"

namespace kymo::analysis {

// Parses rows of numbers 64 bytes at a time, in pieces that stay in the first-level cache. It finds
// all separators of a piece, converts the digits between them to numbers, four or eight at once,
// and checks whether the piece held only rows. Then it turns the rows into columns. It stops before
// the first line that is not plain. The caller must parse this line.
//
// Threads: one at a time.
// Cost:    128 KiB, allocated at the first scan, or more if a row can be longer than 8 KiB.
class RowScan {
 public:
  // `columns` includes the time.
  RowScan(std::size_t columns, const RowKernel& kernel) : columns_(columns), kernel_(&kernel) {}

  // The destination of rows: value `i` of a row goes to words[i * stride + row].
  struct Destination {
    std::uint64_t* words = nullptr;
    std::size_t stride = 0;
    std::size_t max_rows = 0;
  };
  struct Scanned {
    std::size_t bytes = 0;
    std::size_t rows = 0;
  };
  // Parses lines from the beginning of `text` until `max_rows` are found, or until a line
  // - is not `columns` numbers of 1 to 16 digits, separated by tabs,
  // - has a time below that of the row before (for the first row: below `last_time`), or
  // - has no line end.
  // The kMargin bytes before `text` must be readable.
  Scanned scan(std::string_view text, const Destination& target, std::uint64_t last_time);

  static constexpr std::size_t kMargin = RowKernel::kMaxDigits;

 private:
  struct Piece {
    Scanned scanned;
    bool stopped = false;  // the next line is not plain
  };
  Piece scan_piece(std::string_view text, const Destination& target, std::uint64_t last_time);
  [[nodiscard]] std::size_t plain_rows(std::string_view text, std::size_t rows) const;
  [[nodiscard]] std::size_t rows_in_time(std::size_t rows, std::uint64_t last_time) const;

  std::size_t columns_;
  const RowKernel* kernel_;
  // The offsets of the separators of a piece. The first one is before the piece.
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint64_t> numbers_;  // the numbers of a piece, row by row
};

}  // namespace kymo::analysis
