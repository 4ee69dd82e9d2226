#include "lens/report/human.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/harmful_character.h"

namespace kymo::report {
namespace {

// The UTF-8 character at the beginning of a text.
struct Character {
  std::size_t length = 0;  // in bytes, as its first byte says; 0 if no character begins with it
  std::size_t valid = 0;   // how many of these bytes are present and valid
  char32_t point = 0;

  [[nodiscard]] bool is_whole() const { return length != 0 && valid == length; }
};

// Whether the second byte is valid. It excludes overlong forms, surrogates, and values above
// U+10FFFF.
bool fits_second(unsigned first, unsigned second) {
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, 1, first};
  if (first < 0xc2 || first > 0xf4) return {};
  Character character;
  character.length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  character.point = first & (0x7fU >> character.length);
  character.valid = 1;
  for (std::size_t i = 1; i < character.length && i < text.size(); ++i) {
    const bool fits = i == 1 ? fits_second(first, byte(1)) : (byte(i) & 0xc0U) == 0x80U;
    if (!fits) break;
    character.point = (character.point << 6U) | (byte(i) & 0x3fU);
    ++character.valid;
  }
  return character;
}

}  // namespace

std::string value(double value, Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return bytes(value);
    case Unit::nanoseconds:
      return duration(value);
    case Unit::microseconds:
      return duration(value * 1e3);
    case Unit::count:
    case Unit::pages:
      break;
  }
  constexpr double kExact = 0x1p53;  // from here on, a double has no longer each whole number
  if (value >= kExact) return fmt::format("{:.6g}", value);
  const bool whole = value == std::floor(value);
  return whole ? with_commas(static_cast<std::uint64_t>(value)) : fmt::format("{:.2f}", value);
}

std::string rate(double per_second, Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return bytes(per_second) + "/s";
    case Unit::nanoseconds:
      return duration(per_second) + "/s";
    case Unit::microseconds:
      return duration(per_second * 1e3) + "/s";
    case Unit::count:
    case Unit::pages:
      break;
  }
  return human::count_rate(per_second);
}

std::string wall_clock(std::int64_t unix_ns) {
  using std::chrono::nanoseconds;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(nanoseconds(unix_ns));
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(nanoseconds(unix_ns) - seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03} UTC",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())), millis.count());
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    const std::size_t length = next.is_whole() ? next.length : 1;
    const bool shown = next.is_whole() && !is_harmful(next.point);
    safe += shown ? text.substr(0, length) : "?";
    text.remove_prefix(length);
  }
  return safe;
}

std::string TerminalFilter::pass(std::string_view piece) {
  std::string text = std::move(kept_);
  kept_.clear();
  text += piece;
  // An incomplete character begins in one of the last three bytes.
  for (std::size_t tail = std::min<std::size_t>(3, text.size()); tail > 0; --tail) {
    const std::string_view end(text.data() + text.size() - tail, tail);
    const Character last = first_of(end);
    if (last.length <= tail || last.valid != tail) continue;
    kept_ = text.substr(text.size() - tail);
    text.resize(text.size() - tail);
    break;
  }
  if (kept_.empty() && text.ends_with('\r')) {  // a line feed may follow
    kept_ = '\r';
    text.pop_back();
  }
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of("\n\r\t"), rest.size());
    shown += printable(rest.substr(0, end));
    const bool two = rest.substr(end).starts_with("\r\n");
    if (end < rest.size()) shown += rest[end] == '\t' ? '\t' : '\n';
    rest.remove_prefix(std::min(end + (two ? 2 : 1), rest.size()));
  }
  return shown;
}

std::string TerminalFilter::end() {
  const std::string last = std::exchange(kept_, {});
  return last == "\r" ? "\n" : printable(last);
}

std::string shortened(const std::string& text, std::size_t length) {
  if (text.size() <= length) {
    return text;
  }
  std::size_t end = length - 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end) + "..";
}

}  // namespace kymo::report
