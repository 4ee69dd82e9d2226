#pragma once

#include <cstdint>
#include <string_view>

#include "kymo/result.h"

namespace kymo {

// What a number without a unit is, where people write a time.
enum class NoUnit : std::uint8_t { is_seconds, is_refused };

// A time as people write it, in nanoseconds: "30s", "1.5h", "-0.1s". The units are us, ms, s, m and h.
//
// Errors: invalid_argument if it is no such time, or is longer than 285 years. The message says what
//         is wrong with the text, and what to give.
Result<double> nanoseconds_of_text(std::string_view text, NoUnit no_unit);

}  // namespace kymo
