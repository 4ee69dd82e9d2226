#include "time_option.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <map>

namespace kymo::cli {

double nanoseconds_of(const std::string& option, const std::string& text,
                      const std::string& without) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string unit(parsed.ptr, end);
  const std::map<std::string, double> units{
      {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}};
  const std::string examples = "30s, 500ms, 5m or 1h";
  if (parsed.ec != std::errc() || !std::isfinite(number) || number <= 0) {
    throw CLI::ValidationError(option, text + " is not a time above 0: give " + examples);
  }
  const auto found = units.find(unit);
  if (found == units.end()) {
    throw CLI::ValidationError(
        option, unit.empty() ? text + " has no unit: give " + text + "s, or use the unit ms, m or h"
                             : unit + " is not a unit of time: give " + examples);
  }
  constexpr double kMaxLength = 9e18;  // the longest time that fits into a request
  if (number * found->second > kMaxLength) {
    throw CLI::ValidationError(option, text + " is too long: " + without);
  }
  return number * found->second;
}

}  // namespace kymo::cli
