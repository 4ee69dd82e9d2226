#include "base/time_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace kymo {
namespace {

constexpr double kSecondInNs = 1e9;
constexpr double kMaxTimeNs = 9e18;  // the longest time that fits into a request
constexpr std::array<std::pair<std::string_view, double>, 5> kTimeUnits{
    {{"us", 1e3},
     {"ms", 1e6},
     {"s", kSecondInNs},
     {"m", 60 * kSecondInNs},
     {"h", 3600 * kSecondInNs}}};
constexpr const char* kTimeExamples = ": give 30s, 500ms, 5m or 1h";

}  // namespace

Result<double> nanoseconds_of_text(std::string_view text, NoUnit no_unit) {
  const auto refused = [](const std::string& why) { return Error{Code::invalid_argument, why}; };
  const std::string given(text);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || !std::isfinite(number)) {
    return refused(given + " is not a time" + kTimeExamples);
  }
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  double factor = kSecondInNs;
  if (!unit.empty()) {
    const auto* const found = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                           [&](const auto& one) { return one.first == unit; });
    if (found == kTimeUnits.end()) {
      return refused(std::string(unit) + " is not a unit of time" + kTimeExamples);
    }
    factor = found->second;
  } else if (no_unit == NoUnit::is_refused) {
    return refused(given + " has no unit: give " + given + "s, or use the unit ms, m or h");
  }
  if (std::abs(number) * factor > kMaxTimeNs) {
    return refused(given + " is too long");
  }
  return number * factor;
}

}  // namespace kymo
