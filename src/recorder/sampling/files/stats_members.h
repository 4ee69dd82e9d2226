#pragma once

#include <array>
#include <cstdint>

#include "kymo/sink.h"

namespace kymo {

// When a figure is known. If it is not, files leave it out and reports show null.
enum class StatsKnown : std::uint8_t {
  always,
  if_not_zero,     // in reports; files have it always
  timed,           // if there are percentiles; a recording that is cut out has none of its own
  spun,            // if the collector spun
  slept_and_spun,  // if it also slept
};

// What a part of a recording has of a figure (recording_parts.h). The recorder counts a tick before
// its row or gap reaches the part, up to a slot earlier. So the growth of a figure from the
// beginning of a part to its end is not that of the part's ticks.
enum class StatsOfPart : std::uint8_t {
  counted,  // the part counts it itself
  growth,   // the growth between the recorder's reports, twice a second, next to its ends
  newest,   // the value of the whole recording so far; a recording that is cut out has none
  unknown,  // nothing: which of it belongs to its ticks is not known
};

// A figure of ProfilerStats: the one description by which it is written, read and reported.
struct StatsMember {
  const char* name;  // in NAME.meta.json and in reports
  std::uint64_t ProfilerStats::*value;
  StatsKnown known;
  StatsOfPart of_part;
  // Whether it holds only for the rows that the last metadata of the recorder count.
  bool of_rows;
  // Whether a report lists it with the figures of the recorder. It shows the others elsewhere.
  bool reported;
};

// In the order of a report.
inline constexpr auto kStatsMembers = [] {
  using S = ProfilerStats;
  using enum StatsKnown;
  using enum StatsOfPart;
  return std::to_array<StatsMember>({
      {"duration_ns", &S::duration_ns, always, counted, false, false},
      {"ticks_due", &S::ticks_due, always, counted, false, false},
      {"rows_written", &S::rows_written, always, counted, false, false},
      {"missed_late", &S::missed_late, always, counted, false, false},
      {"missed_ring_full", &S::missed_ring_full, always, counted, false, false},
      {"missed_sink_error", &S::missed_sink_error, always, counted, false, false},
      {"missed_frozen", &S::missed_frozen, always, counted, false, false},
      {"late_waited", &S::late_waited, timed, unknown, false, true},
      {"late_sample", &S::late_sample, timed, unknown, false, true},
      {"late_stolen", &S::late_stolen, timed, unknown, false, true},
      {"late_page_fault", &S::late_page_fault, timed, unknown, false, true},
      {"rows_captured", &S::rows_captured, always, counted, false, true},
      {"backoffs", &S::backoffs, always, growth, false, true},
      {"backoff_ns", &S::backoff_ns, always, growth, false, true},
      {"timing_error_ns", &S::timing_error_ns, if_not_zero, unknown, true, true},
      {"timing_error_max_ns", &S::timing_error_max_ns, if_not_zero, unknown, true, true},
      {"timing_error_p50_ns", &S::timing_error_p50_ns, timed, unknown, true, true},
      {"timing_error_p99_ns", &S::timing_error_p99_ns, timed, unknown, true, true},
      {"timing_error_p999_ns", &S::timing_error_p999_ns, timed, unknown, true, true},
      {"rows_on_time", &S::rows_on_time, timed, unknown, true, true},
      {"spin_ns", &S::spin_ns, spun, unknown, true, true},
      {"wakeup_latency_ns", &S::wakeup_latency_ns, slept_and_spun, unknown, true, true},
      {"sample_window_max_ns", &S::sample_window_max_ns, if_not_zero, newest, true, true},
      {"bytes_written", &S::bytes_written, always, counted, false, true},
  });
}();
static_assert(sizeof(ProfilerStats) == (kStatsMembers.size() + 1) * sizeof(std::uint64_t),
              "a figure has no row (sample_window_ns has none: only gVisor's format has it)");

[[nodiscard]] inline bool is_known(const StatsMember& member, const ProfilerStats& stats) {
  switch (member.known) {
    case StatsKnown::always:
      return true;
    case StatsKnown::if_not_zero:
      return stats.*member.value != 0;
    case StatsKnown::timed:
      return stats.timing_error_p999_ns != 0;
    case StatsKnown::spun:
      return stats.spin_ns != 0 || stats.wakeup_latency_ns != 0;
    case StatsKnown::slept_and_spun:
      return stats.wakeup_latency_ns != 0;
  }
  return true;
}

}  // namespace kymo
