#include "instant_option.h"

#include <time.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "time_option.h"

namespace kymo::cli {
namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

// The parts of a time that a format finds in the whole text. Parts that are not in it are those of
// `at`.
std::optional<std::tm> parse(const std::string& text, const char* format, std::tm at) {
  const char* const end = ::strptime(text.c_str(), format, &at);
  if (end == nullptr || *end != '\0') return std::nullopt;
  at.tm_isdst = -1;  // mktime(3) finds out
  return at;
}

// The last time that the clock showed this.
std::int64_t last_time(std::tm at, std::int64_t now_s) {
  std::tm day_before = at;
  --day_before.tm_mday;
  const std::int64_t today_s = ::mktime(&at);
  return today_s <= now_s ? today_s : ::mktime(&day_before);
}

}  // namespace

std::int64_t instant_of(const std::string& option, const std::string& text,
                        std::int64_t now_unix_ns) {
  const std::int64_t now_s = now_unix_ns / kNanosPerSecond;
  std::tm midnight{};
  ::localtime_r(&now_s, &midnight);
  midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
  for (const char* const format : {"%H:%M:%S", "%H:%M"}) {
    const auto at = parse(text, format, midnight);
    if (at) return last_time(*at, now_s) * kNanosPerSecond;
  }
  constexpr std::string_view kYesterday = "yesterday";
  if (text.starts_with(kYesterday)) {
    std::tm day = midnight;
    --day.tm_mday;
    for (const char* const format : {" %H:%M:%S", " %H:%M", ""}) {
      if (auto at = parse(text.substr(kYesterday.size()), format, day)) {
        return ::mktime(&*at) * kNanosPerSecond;
      }
    }
  }
  for (const char* const format :
       {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    if (auto at = parse(text, format, midnight)) return ::mktime(&*at) * kNanosPerSecond;
  }
  if (text.find_first_of(":-") != std::string::npos) {
    throw CLI::ValidationError(option, text +
                                           " is no instant: give 2h (ago), 15:30, "
                                           "\"yesterday 15:30\", "
                                           "\"2026-11-25 15:30\" or 2026-11-25");
  }
  const double ago_ns = nanoseconds_of(option, text, "give a later instant");
  return now_unix_ns - static_cast<std::int64_t>(ago_ns);
}

}  // namespace kymo::cli
