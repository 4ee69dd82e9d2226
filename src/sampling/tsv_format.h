#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kymo/metric.h"
#include "kymo/sink.h"

namespace kymo {

// The longest text of a uint64, 18446744073709551615, with its separator.
inline constexpr std::size_t kMaxNumberChars = 21;

// Writes `value` in decimal at `out`; returns the end. At most 20 characters.
char* format_number(char* out, std::uint64_t value) noexcept;

// `Time (ns)` and the column names, tab-separated, with the newline.
std::string tsv_header(const std::vector<Column>& columns);

// Turns rows into TSV lines. A value equal to the one above it is copied, not formatted: in a
// recording most columns stand still most of the time.
//
// Memory: fixed by the constructor. Threads: one. Cost: bench/writer.
class TsvFormatter {
 public:
  // For rows of `stride` words; the buffer holds at least `rows` of them at their longest.
  TsvFormatter(std::size_t stride, std::size_t rows);

  // How many rows fit into one call.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // The lines of these rows (at most capacity()), valid until the next call.
  // `base_ns` is subtracted from each row's time.
  std::string_view format(const Rows& rows, std::uint64_t base_ns) noexcept;

 private:
  // The last text of one column, tab before it included.
  struct Cached {
    std::uint64_t value = 0;
    std::uint8_t size = 2;
    char text[23] = {'\t', '0'};
  };

  std::size_t capacity_;
  std::vector<char> buffer_;
  std::vector<Cached> cached_;
};

}  // namespace kymo
