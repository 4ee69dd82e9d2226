#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/trouble.h"
#include "recorder/sampling/history/cut_sink.h"
#include "recorder/sampling/history/snapshots.h"

namespace kymo::daemon {

// One recording of the daemon, from its start to its stop: the profiler, the rows of the last
// seconds in memory, and the daemon-wide file if one is asked for. The columns and the interval
// stay the same all that time.
//
// Threads:   every member from any thread; troubles() and new_warnings() from one, start() before
//            all others.
// Ownership: refers to the registry, which must outlive it.
class RecorderRun {
 public:
  // Starts nothing.
  RecorderRun(const Registry& registry, const Config& config);

  // Errors: a metric is unknown, or the daemon-wide file cannot be opened.
  Result<void> start();
  // Finishes every recording with the rows that exist.
  // Errors: those of Profiler::stop(), thus data_loss if rows or ticks are missing.
  Result<void> stop() { return profiler_.stop(); }
  [[nodiscard]] bool running() const { return profiler_.running(); }

  // What is recorded; known after start().
  [[nodiscard]] const RecordingInfo& info() const { return info_; }
  // The daemon-wide file; empty if there is none.
  [[nodiscard]] const std::string& log_path() const { return log_path_; }
  // The time now on the recording's clock, and the time on that clock that belongs to a time of
  // CLOCK_MONOTONIC (0 if it is before the recording's start).
  [[nodiscard]] std::uint64_t now_ns() const { return profiler_.now_ns(); }
  [[nodiscard]] std::uint64_t on_clock(std::uint64_t monotonic_ns) const;
  // The time now, or the time at which the recording ended.
  [[nodiscard]] std::uint64_t end_ns() const {
    return running() ? now_ns() : profiler_.stats().duration_ns;
  }
  // kept(): how far back a snapshot reaches after a long enough run.
  // reach(): how far back it reaches now.
  [[nodiscard]] std::chrono::nanoseconds kept() const;
  [[nodiscard]] std::chrono::nanoseconds reach() const;
  // Calls `each` with the rows in memory from `from_ns` on to the newest, piece by piece, oldest
  // first.
  // Cost: copies the rows; the recorder does not wait for it.
  void read(std::uint64_t from_ns, const std::function<void(const Rows&)>& each) const;
  // Reports if rows have begun to be lost since the last call, or are no longer lost.
  [[nodiscard]] std::vector<Trouble> troubles();
  // The profiler's warnings that were not returned by an earlier call.
  [[nodiscard]] std::vector<std::string> new_warnings();

  [[nodiscard]] const Profiler& profiler() const { return profiler_; }
  [[nodiscard]] CutSink& cuts() const { return *cuts_; }
  [[nodiscard]] Snapshots& snapshots() const { return *snapshots_; }

  // The number of requests that are being recorded, and the time (on the recording's clock) until
  // which requests that have ended still want rows.
  std::atomic<int> requests{0};
  std::atomic<std::uint64_t> wanted_until_ns{0};

 private:
  const std::shared_ptr<CutSink> cuts_;
  const std::shared_ptr<Snapshots> snapshots_;
  const std::string log_path_;
  Profiler profiler_;
  TroubleWatch watch_;
  // The warnings that were logged, each up to its colon: what follows may change, such as a count.
  std::set<std::string> warnings_told_;
  RecordingInfo info_;
};

}  // namespace kymo::daemon
