#include "lens/analysis/row_scan.h"

#include <algorithm>

namespace kymo::analysis {
namespace {

// A piece, its separators and its numbers (as rows and as columns) fit into 48 KiB.
constexpr std::size_t kPieceBytes = 12 * 1024;
constexpr std::size_t kMinBytesPerValue = 2;  // a digit and its separator

}  // namespace

RowScan::Scanned RowScan::scan(std::string_view text, const Destination& target,
                               std::uint64_t last_time) {
  // If a row of 16-digit values can be longer than half a piece, a piece is as long as two such
  // rows.
  const std::size_t longest = 2 * (RowKernel::kMaxDigits + 1) * columns_;
  const std::size_t piece_bytes = std::min(std::max(kPieceBytes, longest), text.size());
  ends_.resize(std::max(ends_.size(), 1 + piece_bytes + RowKernel::kUnasked));
  numbers_.resize(std::max(numbers_.size(), piece_bytes / kMinBytesPerValue + RowKernel::kUnasked));
  Scanned all;
  for (bool stopped = false; !stopped && all.rows < target.max_rows;) {
    const Destination rest{target.words + all.rows, target.stride, target.max_rows - all.rows};
    const Piece piece = scan_piece(text.substr(all.bytes, piece_bytes), rest, last_time);
    all.bytes += piece.scanned.bytes;
    all.rows += piece.scanned.rows;
    if (all.rows != 0) last_time = target.words[all.rows - 1];
    stopped = piece.stopped || piece.scanned.rows == 0;
  }
  return all;
}

RowScan::Piece RowScan::scan_piece(std::string_view text, const Destination& target,
                                   std::uint64_t last_time) {
  std::uint32_t* const ends = ends_.data() + 1;
  ends[-1] = UINT32_MAX;  // the offset before the first byte
  const Separators found = kernel_->find_separators(text, ends);
  std::fill_n(ends + found.count, RowKernel::kUnasked, 0U);
  const std::size_t lines = found.count / columns_;
  const std::size_t wanted = std::min(lines, target.max_rows);
  std::size_t rows = std::min(wanted, text.size() / (kMinBytesPerValue * columns_));
  bool plain = kernel_->to_numbers(text.data(), ends, rows * columns_, numbers_.data());
  // If there is a line end after each row, and as many line ends as rows, none is within a row.
  plain = plain && !found.strange && found.lines == lines;
  for (std::size_t row = 1; row <= rows; ++row) plain &= text[ends[row * columns_ - 1]] == '\n';
  if (!plain) rows = plain_rows(text, rows);
  rows = rows_in_time(rows, last_time);
  kernel_->to_columns(numbers_.data(), rows, columns_, target.words, target.stride);
  Piece piece;
  piece.scanned.rows = rows;
  piece.scanned.bytes = rows == 0 ? 0 : ends[rows * columns_ - 1] + std::size_t{1};
  piece.stopped = rows < wanted;
  return piece;
}

// How many rows at the beginning are plain.
std::size_t RowScan::plain_rows(std::string_view text, std::size_t rows) const {
  const std::uint32_t* end = ends_.data() + 1;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 1; column <= columns_; ++column, ++end) {
      const std::uint32_t digits = *end - end[-1] - 1;
      const char separator = column == columns_ ? '\n' : '\t';
      if (digits - 1 >= RowKernel::kMaxDigits || text[*end] != separator) return row;
    }
  }
  return rows;
}

std::size_t RowScan::rows_in_time(std::size_t rows, std::uint64_t last_time) const {
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t time = numbers_[row * columns_];
    if (time < last_time) return row;
    last_time = time;
  }
  return rows;
}

}  // namespace kymo::analysis
