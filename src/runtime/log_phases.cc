#include "runtime/log_phases.h"

#include <cstddef>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;
// Beyond, a phase's stretches are one scope: a tree of processes has some for each.
constexpr std::size_t kMostStretches = 64;
constexpr ScopeOptions kSaidAgain{.category = "criu", .redundant = true};

std::string log_text(const std::string& path) {
  Result<std::string> log = read_file(path);
  return log ? *std::move(log) : std::string();
}

void add_phases(const criu::LogPhases& phases, const LogClock& clock) {
  const std::uint64_t began_ns = clock.log_began_ns(phases);
  if (began_ns == 0) {
    return;
  }
  std::size_t stretches = 0;
  for (const criu::Phase& phase : phases.phases) {
    stretches += phase.spans.size();
  }
  const auto add = [&](const criu::Phase& phase, std::uint64_t begin_us, std::uint64_t us) {
    const std::string name = "criu's log: " + phase.name;
    add_scope(ScopeName(std::string_view(name)),
              began_ns + begin_us * kNanosecondsInAMicrosecond, us * kNanosecondsInAMicrosecond, 0,
              kSaidAgain);
  };
  for (const criu::Phase& phase : phases.phases) {
    if (stretches > kMostStretches) {
      add(phase, phase.spans.front().begin_us, phase.duration_us);
      continue;
    }
    for (const criu::PhaseSpan& span : phase.spans) {
      add(phase, span.begin_us, span.end_us - span.begin_us);
    }
  }
}

}  // namespace

criu::Notified LogClock::listen(criu::Notified next) {
  return [this, next = std::move(next)](std::string_view name) {
    if (first_ns_ == 0) {
      first_ns_ = monotonic_ns();
    }
    if (next) {
      next(name);
    }
  };
}

std::uint64_t LogClock::log_began_ns(const criu::LogPhases& phases) const {
  for (const criu::Phase& phase : phases.phases) {
    if (phase.name == criu::kHooksPhase) {
      const std::uint64_t since_ns = phase.spans.front().begin_us * kNanosecondsInAMicrosecond;
      return first_ns_ > since_ns ? first_ns_ - since_ns : 0;
    }
  }
  return 0;
}

void add_dump_phases(const std::string& log_path, const std::optional<criu::DumpStats>& stats,
                     const LogClock& clock) {
  Scope reading("read CRIU's log", {.category = "runtime"});
  if (reading.recorded()) {
    const criu::LogPhases phases = criu::dump_phases(log_text(log_path), stats);
    reading.end();
    add_phases(phases, clock);
  }
}

void add_restore_phases(const std::string& log_path,
                        const std::optional<criu::RestoreStats>& stats, const LogClock& clock) {
  Scope reading("read CRIU's log", {.category = "runtime"});
  if (reading.recorded()) {
    const criu::LogPhases phases = criu::restore_phases(log_text(log_path), stats);
    reading.end();
    add_phases(phases, clock);
  }
}

}  // namespace kymo::runtime
