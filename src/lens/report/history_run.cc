#include "lens/report/history_run.h"

namespace kymo::report {

HistoryRun run_of(const v1::HistoryRun& run) {
  HistoryRun out;
  out.checkpoint = run.checkpoint();
  out.created_unix_ns = run.created_unix_ns();
  out.error = run.error();
  out.refused = run.refused();
  out.failure = run.failure();
  out.duration_ns = run.duration_ns();
  out.image_bytes = run.image_bytes();
  if (run.stood_still_ns() != 0) out.stood_still_ns = run.stood_still_ns();
  if (run.away_ns() != 0) out.away_ns = run.away_ns();
  out.conditions = run.conditions();
  out.warmth = run.warmth();
  for (const v1::HistoryPhase& phase : run.phases()) {
    out.phases.emplace_back(phase.name(), phase.duration_ns());
  }
  return out;
}

}  // namespace kymo::report
