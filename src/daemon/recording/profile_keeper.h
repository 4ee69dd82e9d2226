#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/helper_process.h"
#include "base/line_reader.h"
#include "daemon/recording/metrics.h"
#include "kymo/result.h"
#include "profiler/kept/keeper.h"

namespace kymo::daemon {

// Runs the process that keeps stack profiles (--profiles). If it ends, it is started again, later each time.
// What it says is logged, once until it says something else, and counted.
//
// Threads:   one; not_kept() and clock_note() from any.
// Ownership: refers to the metrics.
class ProfileKeeper {
 public:
  // Starts nothing yet.
  ProfileKeeper(profiles::KeeperOrder order, Metrics& metrics);
  // Waits until the process has kept the minute in progress and has ended, at most ten seconds.
  ~ProfileKeeper();
  ProfileKeeper(const ProfileKeeper&) = delete;
  ProfileKeeper& operator=(const ProfileKeeper&) = delete;

  // Starts the process if none runs, reads what it says, and tells it which jobs run, and the
  // cgroups of containers that are kept. Call it each second. It does not wait.
  void look(const profiles::JobSessions& jobs, const std::vector<std::string>& containers);
  // Tells the process to end. It keeps the minute in progress meanwhile. Do not call look() afterwards.
  void end() { keeper_.orders.reset(); }
  // Why stack profiles are not kept now. Empty: they are, or the process was started just now.
  [[nodiscard]] std::string not_kept() const;
  // What happened to the clock of the machine in the last hour. Empty: nothing.
  [[nodiscard]] std::string clock_note() const;

 private:
  Result<void> start(std::string jobs_and_containers);
  void read_answers();
  void take(const std::string& line);
  void tell(std::string text);
  void reap();
  void notice_silence();
  void trouble(const std::string& why);
  void note(std::string_view text);
  void removed(const profiles::Removed& removed);
  void say_removed();
  void set_not_kept(const std::string& why);

  const profiles::KeeperOrder order_;
  Metrics& metrics_;
  HelperProcess keeper_;  // pid 0: none runs
  LineReader lines_{-1};
  bool ready_ = false;                // it takes samples
  std::uint64_t started_ns_ = 0;      // when it was started
  std::string told_;                  // the last lines about jobs and containers
  std::string trouble_;               // the last that was logged
  std::string no_stacks_;             // why the process only pulls
  profiles::Removed unsaid_;          // what was removed since the log said it
  std::uint64_t say_removed_ns_ = 0;  // when the log may say it again
  mutable std::mutex mutex_;          // of the next three
  std::string not_kept_;
  std::string clock_note_;
  std::uint64_t clock_note_ns_ = 0;  // when it was made
  std::uint64_t next_ns_ = 0;        // when the process may be started again
  std::uint64_t pause_ns_ = 0;       // the last pause before that
};

}  // namespace kymo::daemon
