#pragma once

#include <memory>

#include "base/confine/helper.h"
#include "daemon/config/config.h"
#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The whole of kymod: socket, API, jobs, recorder and HTTP port.
//
// Threads:   start(), run() and the destructor on one thread. Block SIGTERM, SIGINT and SIGUSR1 in
//            it before start(), so that they are blocked in every thread and only run() takes them.
// Ownership: owns everything. Jobs run on when it ends.
// Errors:    if start() fails, it stops what it had started.
class Daemon {
 public:
  // `helper` was started with foreign_readers(), and must outlive the daemon.
  static Result<std::unique_ptr<Daemon>> start(Config config, const confine::Helper& helper);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM or SIGINT; SIGUSR1 takes a snapshot. Then it stops: it removes the socket
  // and takes no more requests, waits at most a minute for the running ones, and finishes the
  // recordings. If a request still runs after that minute, it ends the program with status 1.
  // Errors: the daemon-wide recording could not be kept.
  Result<void> run();

 private:
  struct State;
  explicit Daemon(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// All columns that a daemon with this configuration can record, to show them to a user.
Result<std::vector<Column>> available_columns(const Config& config);
// Checks that every name in --profiling-metrics exists.
// Errors: invalid_argument; the message lists similar names.
Result<void> check_metric_names(const Config& config);

}  // namespace kymo::daemon
