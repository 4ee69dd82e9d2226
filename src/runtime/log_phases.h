#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "criu/client.h"
#include "criu/phases.h"

namespace kymo::runtime {

// Ties a CRIU log's clock, which is its own, to CLOCK_MONOTONIC: by the first notification, which
// the log has as the first hook; a log below level 4, which has no hooks, by the notification
// pre-dump, 50 us behind the line with which freezing begins.
class LogClock {
 public:
  // Passes notifications on and notes when the first came.
  criu::Notified listen(criu::Notified next);
  // Where the log began; 0 where no notification came or the log shows none.
  [[nodiscard]] std::uint64_t log_began_ns(const criu::LogPhases& phases) const;

 private:
  std::uint64_t first_ns_ = 0;
  std::uint64_t freeze_ns_ = 0;
};

// Adds the phases that a dump's or restore's log shows to the scope that is open on this thread, as
// redundant ones: CRIU's time is counted by what was seen of it as it ran. All stretches of a phase
// are one scope, which begins with the first. Nothing where nobody listens. Returns the time from
// the log's first line to its last, in nanoseconds; 0 where nobody listens. Cost: a pass over the
// log.
std::uint64_t add_dump_phases(const std::string& log_path,
                              const std::optional<criu::DumpStats>& stats, const LogClock& clock);
std::uint64_t add_restore_phases(const std::string& log_path,
                                 const std::optional<criu::RestoreStats>& stats,
                                 const LogClock& clock);

}  // namespace kymo::runtime
