#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/helper_process.h"
#include "base/line_reader.h"
#include "daemon/recorder/metrics.h"
#include "kymo/result.h"
#include "profiles/keeper.h"

namespace kymo::daemon {

// Runs the process that keeps stack profiles (--profiles). If it ends, it is started again, later each time.
// What it says is logged, once until it says something else, and counted.
//
// Threads:   one.
// Ownership: refers to the metrics.
class ProfileKeeper {
 public:
  // Starts nothing yet.
  ProfileKeeper(profiles::KeeperOrder order, Metrics& metrics);
  // Tells the process to end, and waits until it has kept the minute in progress, at most ten seconds.
  ~ProfileKeeper();
  ProfileKeeper(const ProfileKeeper&) = delete;
  ProfileKeeper& operator=(const ProfileKeeper&) = delete;

  // Starts the process if none runs, reads what it says, and tells it which jobs run, and the
  // cgroups of containers that are kept. Call it each second. It does not wait.
  void look(const profiles::JobSessions& jobs, const std::vector<std::string>& containers);

 private:
  Result<void> start();
  void read_answers();
  void take(const std::string& line);
  void tell(std::string text);
  void reap();
  void notice_silence();
  void trouble(const std::string& why);

  const profiles::KeeperOrder order_;
  Metrics& metrics_;
  HelperProcess keeper_;  // pid 0: none runs
  LineReader lines_{-1};
  bool ready_ = false;            // it takes samples
  std::uint64_t started_ns_ = 0;  // when it was started
  std::string told_;              // the last lines about jobs and containers
  std::string trouble_;           // the last that was logged
  std::uint64_t next_ns_ = 0;     // when the process may be started again
  std::uint64_t pause_ns_ = 0;    // the last pause before that
};

}  // namespace kymo::daemon
