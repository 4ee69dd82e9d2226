#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>

// Numbers as text for people, rounded. Use JSON or the values themselves if they must be exact.
namespace kymo::human {

// 1234567 as "1,234,567".
std::string with_commas(std::uint64_t value);
// A span of time with three or four digits: "850 ns", "12.3 µs", "4.56 s".
std::string duration(double ns);
std::string bytes(double value);
// The same for other types of numbers.
inline std::string duration(std::chrono::nanoseconds time) {
  return duration(static_cast<double>(time.count()));
}
template <std::unsigned_integral Number>
std::string duration(Number ns) {
  return duration(static_cast<double>(ns));
}
template <std::unsigned_integral Number>
std::string bytes(Number value) {
  return bytes(static_cast<double>(value));
}
// A rate of things without a unit: "45.6 k/s".
std::string count_rate(double per_second);
std::string percent(double share);         // "12.34 %"
std::string whole_percent(double share);   // "12 %"
std::string signed_percent(double share);  // a change: "+12.3 %"

}  // namespace kymo::human
