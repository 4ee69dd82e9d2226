#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kymo/metric.h"

namespace kymo::report {

// Numbers for people. Exact values are the JSON's business, or the caller's.

// 1234567 as "1,234,567".
std::string with_commas(std::uint64_t value);
// A span of time with three or four digits: "850 ns", "12.3 µs", "4.56 s".
std::string duration(double ns);
std::string bytes(double value);
// A value of a column: bytes and times scaled, counts with commas.
std::string value(double value, Unit unit);
// A rate of a column, per second: "12.3 MiB/s", "45.6 k/s".
std::string rate(double per_second, Unit unit);
std::string percent(double share);
// A moment on the wall clock, in UTC: "2026-11-21 08:33:05.123 UTC".
std::string wall_clock(std::int64_t unix_ns);
// Text of others, safe to show on a terminal and on one line: what a terminal would obey, and what
// would turn the order of what is read about (Unicode TR 36), becomes '?', and so does each byte
// that is not part of valid UTF-8: some terminals obey the bytes 0x80 to 0x9f.
std::string printable(std::string_view text);

// The same for a stream of lines that comes in pieces. Line feeds, carriage returns and tabs stay.
class TerminalFilter {
 public:
  // What can be shown of it. Up to three bytes of a character that is cut in two are kept for the
  // next piece.
  std::string pass(std::string_view piece);
  // What was kept, when there is no next piece.
  std::string end();

 private:
  std::string kept_;
};

// At most `length` bytes of it, with ".." for the rest; no character is cut in two.
std::string shortened(const std::string& text, std::size_t length);

}  // namespace kymo::report
