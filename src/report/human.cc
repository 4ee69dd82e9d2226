#include "report/human.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace kymo::report {
namespace {

// Bytes of UTF-8 at the front that are one control character, or 0.
std::size_t harmful_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < ' ' || first == 0x7f) return 1;
  // U+0080 to U+009F: terminals take them for escapes, too.
  if (first == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  if (first == 0xd8 && byte(1) == 0x9c) return 2;  // U+061C
  if (first != 0xe2) return 0;
  const unsigned last = byte(2);
  // U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F.
  const bool of_80 =
      byte(1) == 0x80 && ((last >= 0x8b && last <= 0x8f) || (last >= 0xa8 && last <= 0xae));
  const bool of_81 = byte(1) == 0x81 && last >= 0xa0 && last <= 0xaf;
  return of_80 || of_81 ? 3 : 0;
}

constexpr double kKibi = 1024;

// Three significant digits, never an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (value == std::floor(value) && size < 1000) {
    return fmt::format("{:.0f}", value);
  }
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

template <std::size_t N>
std::string scaled(double value, double step, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  // 999.6 of a unit would print as 1000: the next unit says it better.
  while (unit + 1 < N && std::abs(value) >= (step == kKibi ? kKibi : 999.5)) {
    value /= step;
    ++unit;
  }
  return three_digits(value) + units.at(unit);
}

std::string count_rate(double per_second) {
  constexpr std::array<const char*, 5> kUnits = {"/s", " k/s", " M/s", " G/s", " T/s"};
  return scaled(per_second, 1000, kUnits);
}

}  // namespace

std::string with_commas(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, 1, ',');
  }
  return digits;
}

std::string duration(double ns) {
  constexpr std::array<const char*, 4> kUnits = {" ns", " µs", " ms", " s"};
  constexpr double kHour = 3.6e12;
  return ns >= kHour ? fmt::format("{:.2f} h", ns / kHour) : scaled(ns, 1000, kUnits);
}

std::string bytes(double value) {
  constexpr std::array<const char*, 6> kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return scaled(value, kKibi, kUnits);
}

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
  const bool whole = value == std::floor(value) && value < 9e18;
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
  return count_rate(per_second);
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", share * 100);
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
    const std::size_t harmful = harmful_length(text);
    safe += harmful == 0 ? text.front() : '?';
    text.remove_prefix(std::max<std::size_t>(harmful, 1));
  }
  return safe;
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
