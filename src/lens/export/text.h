#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace kymo::exporting {

inline void append_number(std::uint64_t number, std::string& out) {
  std::array<char, 20> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// Appends `number` divided by 10 to the power of `places`, exactly, with all decimal places.
inline void append_fixed(std::uint64_t number, std::size_t places, std::string& out) {
  std::uint64_t unit = 1;
  for (std::size_t i = 0; i < places; ++i) unit *= 10;
  append_number(number / unit, out);
  if (places == 0) return;
  out += '.';
  const std::size_t at = out.size();
  append_number(number % unit, out);
  out.insert(at, places - (out.size() - at), '0');
}

// The same without trailing zeros.
inline void append_decimal(std::uint64_t number, std::size_t places, std::string& out) {
  append_fixed(number, places, out);
  if (places == 0) return;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
}

}  // namespace kymo::exporting
