#pragma once

#include <cstdint>
#include <string>

namespace kymo::cli {

// Parses the value of an option that is an instant, in local time, and returns nanoseconds since
// 1970: "2h" is two hours ago, "15:30" the last time that it was half past three, "yesterday 15:30" that
// of the day before, "2026-11-25" the
// beginning of that day, "2026-11-25 15:30" and "2026-11-25 15:30:05" what they say.
// Throws CLI::ValidationError.
std::int64_t instant_of(const std::string& option, const std::string& text,
                        std::int64_t now_unix_ns);

}  // namespace kymo::cli
