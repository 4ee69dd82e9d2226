#pragma once

#include <optional>
#include <string>

#include "base/claims.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/config/config.h"
#include "daemon/database/store.h"
#include "daemon/recording/metrics.h"
#include "daemon/recording/recorder.h"
#include "daemon/request/kernel_view.h"
#include "daemon/request/progress.h"
#include "daemon/request/stack_collectors.h"
#include "daemon/state/first_runs.h"
#include "daemon/state/foreign.h"
#include "daemon/state/jobs.h"
#include "daemon/state/unconfirmed.h"

namespace kymo::daemon {

class ProfileKeeper;

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
  UnconfirmedDumps& unconfirmed;
  StackCollectors& stacks;
  const KernelView& kernel;
  const std::optional<ProfileKeeper>& profile_keeper;  // nothing: no --profiles
};

}  // namespace kymo::daemon
