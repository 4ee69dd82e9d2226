#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "criu/stats.h"

namespace kymo::criu {

// A stretch of time on a log's clock: microseconds since its first line.
struct PhaseSpan {
  std::uint64_t begin_us = 0;
  std::uint64_t end_us = 0;
};

// The phase in which CRIU waits for whom it notifies, or for a script.
inline constexpr std::string_view kHooksPhase = "hooks";
inline constexpr std::string_view kFreezePhase = "freeze";

// What one kind of work took of a dump or a restore, all stretches together.
struct Phase {
  std::string name;
  std::uint64_t duration_us = 0;
  // A phase begins somewhere between its mark's line in the log and the line before: so much,
  // summed over its stretches.
  std::uint64_t uncertainty_us = 0;
  std::string evidence;  // the line that its first stretch begins with, or "CRIU's statistics"
  std::vector<PhaseSpan> spans;
};

// One process of a restore: what its own lines show.
struct ProcessPhases {
  pid_t pid = 0;
  std::vector<Phase> phases;
};

// Where the time of a dump or restore went, by its log: the phases are exclusive and add up to
// `total_us`, from the log's first line to its last. Of a log that several runs wrote, the last
// run.
struct LogPhases {
  std::uint64_t total_us = 0;
  std::vector<Phase> phases;             // in the order of their first stretches
  std::vector<ProcessPhases> processes;  // of a restore
  std::vector<std::string> notes;        // what cannot be as it stands, and causes that are known
};

// By the marks of CRIU 3.17 to 4.1: of a dump those of log level 3 and above, of a restore those of
// level 4. `stats`, where there are some, tell apart what of the memory's phase was draining and
// what writing. Cost: one pass over the log.
LogPhases dump_phases(std::string_view log, const std::optional<DumpStats>& stats);
LogPhases restore_phases(std::string_view log, const std::optional<RestoreStats>& stats);

// A line's time and what follows it; none for a line without one.
struct LogLine {
  std::uint64_t time_us = 0;
  std::string_view text;
};
std::optional<LogLine> parse_log_line(std::string_view line);

}  // namespace kymo::criu
