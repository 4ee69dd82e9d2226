#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/human.h"
#include "kymo/metric.h"

namespace kymo::report {

// Text for people: numbers (base/human.h), times of the wall clock, and what is safe on a terminal.

using human::bytes;
using human::duration;
using human::percent;
using human::signed_percent;
using human::whole_percent;
using human::with_commas;

// A value of a column: bytes and times scaled, counts with commas.
std::string value(double value, Unit unit);
// A rate of a column, per second: "12.3 MiB/s", "45.6 k/s".
std::string rate(double per_second, Unit unit);
// A time of the wall clock, in UTC: "2026-11-21 08:33:05.123 UTC".
std::string wall_clock(std::int64_t unix_ns);
// Makes untrusted text safe for one line of a terminal. These become '?': control characters,
// characters that change the direction of the text (Unicode TR 36), and each byte that is not part
// of valid UTF-8, because some terminals take the bytes 0x80 to 0x9f for control characters.
std::string printable(std::string_view text);

// The same for a stream of lines that comes in pieces. Line feeds and tabs stay. A carriage return
// becomes a line feed, so that nothing is written over what stands in the line already.
class TerminalFilter {
 public:
  // Returns the printable text of the piece. If the piece ends within a character, or with a
  // carriage return, its bytes (up to three) are kept for the next piece.
  std::string pass(std::string_view piece);
  // Call it after the last piece: returns the text of the bytes that were kept.
  std::string end();

 private:
  std::string kept_;
};

// At most `length` bytes of the text, with ".." for the rest. No character is cut in two.
std::string shortened(const std::string& text, std::size_t length);

}  // namespace kymo::report
