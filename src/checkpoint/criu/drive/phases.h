#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/drive/stats.h"

namespace kymo::criu {

// A stretch of time on a log's clock: microseconds since its first line.
struct PhaseSpan {
  std::uint64_t begin_us = 0;
  std::uint64_t end_us = 0;
};

// The phase in which CRIU waits for a script of somebody else, or for the answer of the program that started it.
inline constexpr std::string_view kHooksPhase = "hooks";
// The phase in which CRIU waits for the answer of kymod (action_script.h).
inline constexpr std::string_view kAnswerPhase = "kymod answers";
// In this phase of a dump kymod makes the images durable, before it answers.
inline constexpr std::string_view kSyncPhase = "sync";
inline constexpr std::string_view kProbePhase = "look at the kernel";
inline constexpr std::string_view kFreezePhase = "freeze";
inline constexpr std::string_view kFindPagesPhase = "memory: finding pages";
inline constexpr std::string_view kWritePagesPhase = "memory: writing pages";
// Finding and writing the pages of shared memory. CRIU's statistics do not have its time.
inline constexpr std::string_view kSharedMemoryPhase = "memory: shared memory";
// In the last part of a dump CRIU lets the processes run on or ends them.
inline constexpr std::string_view kMountsPhase = "mounts";
inline constexpr std::string_view kNetworkPhase = "network";
inline constexpr std::string_view kEndPhase = "resume or end";
inline constexpr std::string_view kResumePhase = "resume";  // of a restore
inline constexpr std::string_view kFinishPhase = "finish";
// The evidence of a phase that no line of the log begins.
inline constexpr std::string_view kFromStatistics = "CRIU's statistics";

// One kind of work in a dump or restore, with the sum of all stretches of time that it took.
struct LogPhase {
  std::string name;
  std::uint64_t duration_us = 0;
  // A phase begins somewhere between the line of its mark in the log and the line before. This is
  // the time between these two lines, summed over the stretches of the phase.
  std::uint64_t uncertainty_us = 0;
  std::string evidence;  // the line that its first stretch begins with, or "CRIU's statistics"
  std::vector<PhaseSpan> spans;
};

// One stretch of time that belongs to one phase.
struct PhaseStretch {
  std::string name;
  std::uint64_t begin_us = 0;
  std::uint64_t end_us = 0;
  std::uint64_t uncertainty_us = 0;  // of its beginning
  std::string evidence;
};

// The phases of one process of a restore, by the lines that it wrote to the log.
struct ProcessPhases {
  pid_t pid = 0;
  std::vector<LogPhase> phases;
};

// Two lines that follow each other in a log, and the time between them.
struct LogPause {
  std::uint64_t length_us = 0;
  std::string before;
  std::string after;
};

// Where the time of a dump or restore went, by its log. The phases do not overlap, and they add up
// to `total_us`, the time from the log's first line to its last. If several runs of CRIU wrote the
// log, this is the last run.
struct LogPhases {
  std::uint64_t total_us = 0;
  std::vector<LogPhase> phases;           // in the order of their first stretches
  std::vector<PhaseStretch> stretches;    // the same phases, in the order of time
  std::vector<ProcessPhases> processes;   // of a restore
  std::vector<std::string> notes;         // contradictions in the log, and known causes of delays
  LogPause longest_pause{};               // of a dump, while it saves all but the memory
  bool stopped_none = false;              // of a dump: it failed before any task was stopped
  std::optional<DumpStats> statistics{};  // those with which the phases were found
};

// Find the phases by the marks of CRIU 3.17 to 4.2. The log of a dump needs log level 3 or above,
// that of a restore level 4. If the statistics of a dump are given, they split the memory phase
// into finding pages and writing them.
// Cost: one pass over the log.
LogPhases dump_phases(std::string_view log, const std::optional<DumpStats>& stats);
LogPhases restore_phases(std::string_view log, const std::optional<RestoreStats>& stats);

// The time of a line, and the text after it.
struct LogLine {
  std::uint64_t time_us = 0;
  std::string_view text;
};
// Returns nothing if the line has no time.
std::optional<LogLine> parse_log_line(std::string_view line);

}  // namespace kymo::criu
