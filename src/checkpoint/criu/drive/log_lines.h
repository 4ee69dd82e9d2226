#pragma once

// The lines of CRIU's log one after the other, with a time that never goes back. Only for phases.cc.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/drive/phases.h"

namespace kymo::criu {

// The lines of different processes can be out of order by less than this (microseconds).
inline constexpr std::uint64_t kOutOfOrder = 10'000;

// The time since a log's first line. CRIU's log uses the wall clock, which may be set while CRIU
// runs. So this time never goes back, and it ignores jumps of a day or more. (CRIU writes a time
// before the first line as one of many years: its seconds are unsigned, and the last digit is cut.)
class SteadyTime {
 public:
  std::uint64_t at(std::uint64_t time_us, std::vector<std::string>& notes) {
    constexpr std::uint64_t kMaxGap = std::uint64_t{86'400} * 1'000'000;
    if (!last_us_) {
      last_us_ = time_us;
    }
    if (time_us < *last_us_ && *last_us_ - time_us < kOutOfOrder) {
      return now_us_;
    }
    if (time_us >= *last_us_ && time_us - *last_us_ < kMaxGap) {
      now_us_ += time_us - *last_us_;
    } else if (!told_) {
      told_ = true;
      notes.emplace_back(
          "the times in the log went back, or jumped by days: the wall clock was set meanwhile, "
          "and the duration of that phase is not known");
    }
    last_us_ = time_us;
    return now_us_;
  }

 private:
  std::optional<std::uint64_t> last_us_;  // the time in the log
  std::uint64_t now_us_ = 0;
  bool told_ = false;
};

// Puts the first line of `log` into `line`, and returns the rest.
inline std::string_view take_line(std::string_view log, std::string_view& line) {
  const std::size_t end = log.find('\n');
  line = log.substr(0, end);
  return end == std::string_view::npos ? std::string_view() : log.substr(end + 1);
}

// The lines of the last run, if several runs wrote the log. The first line of a run has time 0.
inline std::string_view last_run(std::string_view log) {
  std::string_view run = log;
  std::uint64_t last_us = 0;
  for (std::string_view left = log; !left.empty();) {
    std::string_view text;
    const std::string_view after = take_line(left, text);
    if (const auto line = parse_log_line(text)) {
      if (line->time_us == 0 && last_us > kOutOfOrder) {
        run = left;
      }
      last_us = line->time_us;
    }
    left = after;
  }
  return run;
}

// Calls `each` for all lines of the last run that have a time. Returns the time of the last one.
template <class Each>
std::uint64_t each_line(std::string_view log, std::vector<std::string>& notes, const Each& each) {
  SteadyTime clock;
  std::uint64_t last_us = 0;
  std::string_view left = last_run(log);
  if (left.size() < log.size()) {
    notes.emplace_back("the log has several runs of CRIU: this is the last");
  }
  while (!left.empty()) {
    std::string_view text;
    left = take_line(left, text);
    if (auto line = parse_log_line(text)) {
      line->time_us = clock.at(line->time_us, notes);
      last_us = line->time_us;
      each(*line);
    }
  }
  return last_us;
}

}  // namespace kymo::criu
