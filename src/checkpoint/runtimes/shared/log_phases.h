#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// Converts the times of CRIU's log, which start at 0, to CLOCK_MONOTONIC. It needs one event with a
// time on both clocks. Of a dump, that is the notification pre-dump, which comes as soon as its script has
// started after the line with which the dump begins. Of a restore, it is the first notification, which is the
// first hook in the log.
class LogClock {
 public:
  // Returns a function that notes the times of notifications and passes them on to `next`.
  criu::Notified listen(criu::Notified next);
  // CRIU has ended now, so its log has its last line. On a busy machine a notification may be noted
  // late. This bounds how late.
  void criu_ended();
  // Returns when the log began. 0 if no notification came or the log shows none.
  [[nodiscard]] std::uint64_t log_began_ns(const criu::LogPhases& phases) const;
  [[nodiscard]] std::uint64_t criu_ended_ns() const { return ended_ns_; }

 private:
  std::uint64_t first_ns_ = 0;
  std::uint64_t freeze_ns_ = 0;
  std::uint64_t ended_ns_ = 0;  // 0: unknown
};

// Read the phases of a dump or restore from CRIU's log, and add them to the scope that is open on
// this thread. All spans of a phase become one scope, which begins with the first span. The scopes
// are redundant, because other scopes already count CRIU's time. Report the log to the observer.
// Return the time from the first line of the log to the last, in nanoseconds.
// Cost: one pass over the log.
std::uint64_t add_dump_phases(const std::string& log_path,
                              const std::optional<criu::DumpStats>& stats, const LogClock& clock,
                              const Observer& observer);
std::uint64_t add_restore_phases(const std::string& log_path,
                                 const std::optional<criu::RestoreStats>& stats,
                                 const LogClock& clock, const Observer& observer);

}  // namespace kymo::runtime
