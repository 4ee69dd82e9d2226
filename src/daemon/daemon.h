#pragma once

#include <memory>

#include "confine/helper.h"
#include "daemon/config.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo::daemon {

// kymod, whole: socket, API, jobs, recorder and HTTP port.
//
// Threads:   start(), run() and the destructor on one thread. SIGTERM, SIGINT and SIGUSR1 must be
// blocked in it
//            before start(), so that every thread has them blocked and run() alone takes them.
// Ownership: owns everything; jobs outlive it.
// Errors:    start(): everything is checked before anything is started, and what was begun is
// undone.
class Daemon {
 public:
  // `helper` does foreign_works() and outlives the daemon.
  static Result<std::unique_ptr<Daemon>> start(Config config, const confine::Helper& helper);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM or SIGINT (SIGUSR1 takes a snapshot), then stops: takes no more requests,
  // waits for those that run (at most a minute), finishes the recordings, removes the socket.
  // Errors: a request did not end in time, or the daemon-wide recording could not be kept.
  Result<void> run();

 private:
  struct State;
  explicit Daemon(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The columns that a daemon of this configuration can record, for a person to choose from.
Result<std::vector<Column>> available_columns(const Config& config);
// Whether every name in --profiling-metrics exists. Errors: invalid_argument, listing the near
// ones.
Result<void> check_metric_names(const Config& config);

}  // namespace kymo::daemon
