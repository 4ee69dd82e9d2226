#pragma once

#include <string>

#include "base/claims.h"
#include "daemon/config.h"
#include "daemon/first_runs.h"
#include "daemon/foreign.h"
#include "daemon/jobs.h"
#include "daemon/metrics.h"
#include "daemon/progress.h"
#include "daemon/recorder.h"
#include "runtime/criu_choice.h"
#include "runtimes/table.h"
#include "store/store.h"

namespace kymo::daemon {

// The parts of the daemon that requests use. The Daemon makes this once and owns all of them.
struct Parts {
  const Config& config;
  Metrics& metrics;
  Recorder& recorder;
  const runtime::CriuChoice& crius;
  const runtime::Runtimes& runtimes;
  store::Store& store;
  Jobs& jobs;
  Claims<std::string>& claims;  // "process:PID" and "directory:PATH"
  FirstRuns& first_runs;
  ProgressBoard& progress;
  const ForeignFiles& foreign;
};

}  // namespace kymo::daemon
