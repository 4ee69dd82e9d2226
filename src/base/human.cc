#include "base/human.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace kymo::human {
namespace {

// Without an exponent, in no locale.
std::string fixed(double value, int decimals) {
  std::array<char, 352> text{};  // the largest double has 309 digits
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, decimals);
  return error == std::errc{} ? std::string(text.data(), end) : "?";
}

constexpr double kKibi = 1024;

// Three significant digits, never an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (value == std::floor(value) && size < 1000) {
    return fixed(value, 0);
  }
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

template <std::size_t N>
std::string scaled(double value, double step, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  // 999.6 would be shown as 1000, so it takes the next unit.
  while (unit + 1 < N && std::abs(value) >= (step == kKibi ? kKibi : 999.5)) {
    value /= step;
    ++unit;
  }
  return three_digits(value) + units.at(unit);
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
  return ns >= kHour ? fixed(ns / kHour, 2) + " h" : scaled(ns, 1000, kUnits);
}

std::string bytes(double value) {
  constexpr std::array<const char*, 6> kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return scaled(value, kKibi, kUnits);
}

std::string count_rate(double per_second) {
  constexpr std::array<const char*, 5> kUnits = {"/s", " k/s", " M/s", " G/s", " T/s"};
  return scaled(per_second, 1000, kUnits);
}

std::string percent(double share) {
  return fixed(share * 100, 2) + " %";
}

std::string whole_percent(double share) {
  return fixed(std::round(share * 100), 0) + " %";
}

std::string signed_percent(double share) {
  return (share < 0 ? "-" : "+") + fixed(std::abs(share) * 100, 1) + " %";
}

}  // namespace kymo::human
