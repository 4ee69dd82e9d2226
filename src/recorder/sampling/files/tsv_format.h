#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/metric.h"
#include "kymo/sink.h"

namespace kymo {

// The longest text of a uint64, 18446744073709551615, with its separator.
inline constexpr std::size_t kMaxNumberChars = 21;

// Rows are formatted for one write(2) of about this size: large enough that the cost of the system
// call does not matter, small enough for the L2 cache.
inline constexpr std::size_t kFormatBufferBytes = 256 * 1024;
inline std::size_t rows_a_buffer(std::size_t stride) {
  return std::max<std::size_t>(1, kFormatBufferBytes / (stride * kMaxNumberChars));
}

// Writes `value` in decimal at `out`; returns the end. At most 20 characters.
char* format_number(char* out, std::uint64_t value) noexcept;

// `Time (ns)` and the column names, tab-separated, with the newline.
std::string tsv_header(const std::vector<Column>& columns);

// Turns rows into TSV lines.
//
// A value is split at its eighth digit from the right. The upper part rarely changes, so its text
// is kept for each column and copied. The lower eight digits are looked up, four at a time, and
// stored as one word. A changed value therefore costs the same as an unchanged one, and no branch
// depends on the data.
//
// Memory:  fixed by the constructor.
// Threads: one.
// Cost:    see bench/writer.
class TsvFormatter {
 public:
  // For rows of `stride` words. The buffer has room for `rows` rows with the longest numbers.
  TsvFormatter(std::size_t stride, std::size_t rows);

  // How many rows fit into one call.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // The lines of these rows (at most capacity()), valid until the next call.
  // `base_ns` is subtracted from each row's time.
  std::string_view format(const Rows& rows, std::uint64_t base_ns) noexcept;

 private:
  // The text before the lower eight digits: the tab, and the upper digits if there are any.
  struct alignas(32) Upper {
    std::uint64_t base = 0;         // the value without its lower eight digits
    std::uint32_t size = 0;         // used characters of `text`
    std::uint32_t strip_mask = 56;  // 56: remove leading zeros of the lower digits; 0: keep them
    char text[16] = {};
  };
  static_assert(sizeof(Upper) == 32);

  static void renew(Upper& upper, std::uint64_t value, bool with_tab) noexcept;
  static char* append(char* out, Upper& upper, std::uint64_t value, bool with_tab) noexcept;

  std::size_t capacity_;
  std::vector<char> buffer_;
  std::vector<Upper> uppers_;
};

}  // namespace kymo
