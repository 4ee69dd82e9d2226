#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lens/analysis/left_out.h"
#include "lens/analysis/row_scan.h"

namespace kymo::analysis {

// A batch of rows, stored by column, so that a reader can pass over one column at a time.
//
// Threads: one at a time.
// Cost:    `capacity` words for each column, allocated once.
class RowBlock {
 public:
  // `columns` includes the time.
  RowBlock(std::size_t columns, std::size_t capacity)
      : capacity_(capacity), words_(columns * capacity) {}
  // As many rows as fit into a second-level cache.
  static std::size_t default_capacity(std::size_t columns);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] bool full() const { return rows_ == capacity_; }
  [[nodiscard]] std::span<const std::uint64_t> times() const { return column(0); }
  // Column `i` of the file: 0 is the time.
  [[nodiscard]] std::span<const std::uint64_t> column(std::size_t i) const {
    return {words_.data() + i * capacity_, rows_};
  }
  void clear() { rows_ = 0; }

 private:
  friend class RowParser;
  std::size_t capacity_;
  std::size_t rows_ = 0;
  std::vector<std::uint64_t> words_;
};

// Turns whole lines of a plain TSV into rows.
//
// Threads: one at a time. Parsers of different pieces of a file are independent of each other.
// Errors:  none. A line that is not a row is left out and noted, with its number and the reason.
// Cost:    one pass over the bytes, 64 at a time if the machine can (RowScan). A bad line is
//          parsed again.
class RowParser {
 public:
  // `columns` includes the time. `first_line` is the number of the first line that will be parsed.
  // If `kernel` is null, the parser reads digit by digit.
  RowParser(std::size_t columns, std::uint64_t first_line,
            const RowKernel* kernel = best_row_kernel());

  // Parses `lines` until their end or until `block` is full. `lines` must end with a line end.
  // Returns the number of bytes used.
  std::size_t parse(std::string_view lines, RowBlock& block);
  // Begins with a new text: the next line is line 1.
  void begin_again();
  // Notes a line as left out that the caller cannot hand over whole.
  void skip_line(std::string reason);

  // Counts a line that is not a row and need not be one.
  void pass_line() { ++line_; }
  // Counts rows that another parser has parsed.
  void pass_rows(std::uint64_t rows, std::uint64_t last_time) {
    line_ += rows;
    last_time_ = last_time;
  }

  // The number of the next line.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  [[nodiscard]] const LeftOut& left_out() const { return left_out_; }

 private:
  const char* scan_rows(const char* p, const char* end, RowBlock& block);
  const char* parse_line(const char* p, const char* end, RowBlock& block);

  std::size_t columns_;
  std::optional<RowScan> scan_;         // empty: parse digit by digit
  std::uint64_t lines_to_scan_ = 0;     // lines to parse one by one before the next scan
  std::uint64_t lines_one_by_one_ = 1;  // its next value after a scan
  std::uint64_t line_;
  std::uint64_t last_time_ = 0;
  LeftOut left_out_;
};

}  // namespace kymo::analysis
