#include "checkpoint/runtimes/shared/log_phases.h"

#include <algorithm>
#include <utility>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/patience.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;
// CRIU freezes the processes after this notification.
constexpr std::string_view kBeforeFreeze = "pre-dump";
constexpr ScopeOptions kSaidAgain{.category = "criu", .redundant = true};

// Returns an empty text if the log cannot be read or its disk does not answer.
std::string log_text(const std::string& path) {
  const auto text = within(kDiskPatience, [path] {
    Result<std::string> log = read_no_link(path);
    return log ? *std::move(log) : std::string();
  });
  return text.value_or("");
}

void add_scopes(const criu::LogPhases& phases, std::uint64_t began_ns) {
  if (began_ns == 0) {
    return;
  }
  for (const criu::LogPhase& phase : phases.phases) {
    const std::string name = "criu's log: " + phase.name;
    add_scope(ScopeName{std::string_view{name}},
              began_ns + phase.spans.front().begin_us * kNanosecondsInAMicrosecond,
              phase.duration_us * kNanosecondsInAMicrosecond, 0, kSaidAgain);
  }
}

// Returns the time from the first line of the log to the last.
std::uint64_t add_phases(criu::LogPhases phases, const LogClock& clock, const Observer& observer) {
  const std::uint64_t began_ns = clock.log_began_ns(phases);
  const std::uint64_t total_ns = phases.total_us * kNanosecondsInAMicrosecond;
  add_scopes(phases, began_ns);
  if (observer.logged) {
    observer.logged({std::move(phases), began_ns, clock.criu_ended_ns()});
  }
  return total_ns;
}

}  // namespace

criu::Notified LogClock::listen(criu::Notified next) {
  return [this, next = std::move(next)](std::string_view name) {
    if (first_ns_ == 0 || (freeze_ns_ == 0 && name == kBeforeFreeze)) {
      const std::uint64_t now_ns = monotonic_ns();
      if (first_ns_ == 0) first_ns_ = now_ns;
      if (name == kBeforeFreeze) freeze_ns_ = now_ns;
    }
    if (next) {
      next(name);
    }
  };
}

std::uint64_t LogClock::log_began_ns(const criu::LogPhases& phases) const {
  const auto noted = std::find_if(
      phases.stretches.begin(), phases.stretches.end(), [](const criu::PhaseStretch& stretch) {
        return stretch.name == criu::kHooksPhase || stretch.name == criu::kAnswerPhase ||
               stretch.name == criu::kFreezePhase;
      });
  const std::uint64_t at_ns = freeze_ns_ != 0 ? freeze_ns_ : first_ns_;
  const std::uint64_t since_ns =
      noted == phases.stretches.end() ? at_ns : noted->begin_us * kNanosecondsInAMicrosecond;
  const std::uint64_t noted_ns = at_ns - std::min(at_ns, since_ns);
  const std::uint64_t total_ns = phases.total_us * kNanosecondsInAMicrosecond;
  return ended_ns_ > total_ns ? std::min(noted_ns, ended_ns_ - total_ns) : noted_ns;
}

void LogClock::criu_ended() {
  ended_ns_ = monotonic_ns();
}

std::uint64_t add_dump_phases(const std::string& log_path,
                              const std::optional<criu::DumpStats>& stats, const LogClock& clock,
                              const Observer& observer) {
  Scope reading("read CRIU's log", {.category = "runtime"});
  criu::LogPhases phases = criu::dump_phases(log_text(log_path), stats);
  reading.end();
  return add_phases(std::move(phases), clock, observer);
}

std::uint64_t add_restore_phases(const std::string& log_path,
                                 const std::optional<criu::RestoreStats>& stats,
                                 const LogClock& clock, const Observer& observer) {
  Scope reading("read CRIU's log", {.category = "runtime"});
  criu::LogPhases phases = criu::restore_phases(log_text(log_path), stats);
  reading.end();
  return add_phases(std::move(phases), clock, observer);
}

}  // namespace kymo::runtime
