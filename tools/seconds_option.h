#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/time_text.h"

namespace kymo::cli {

// Which numbers of seconds an option takes.
enum class Seconds { any, whole };

// For an option whose value is a number of seconds: lets it also take 500ms, 5m or 1h. Add it by
// transform(), so that checks see the number of seconds.
inline CLI::Validator seconds_text(Seconds which = Seconds::any) {
  const auto to_seconds = [which](std::string& text) -> std::string {
    const Result<double> ns = nanoseconds_of_text(text, NoUnit::is_seconds);
    if (!ns) return ns.error().message;
    const double seconds = *ns / 1e9;
    if (which == Seconds::whole && seconds != std::floor(seconds)) {
      return text + " is not a whole number of seconds: give 30s, 5m or 1h";
    }
    // Without an exponent: what reads a whole number next does not know it.
    std::array<char, 64> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), seconds,
                                       std::chars_format::fixed);
    if (written.ec != std::errc()) return text + " has too many digits";
    text.assign(digits.data(), written.ptr);
    return {};
  };
  return {to_seconds, ""};
}

}  // namespace kymo::cli
