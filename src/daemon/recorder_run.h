#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/trouble.h"
#include "sampling/history.h"
#include "sampling/snapshots.h"

namespace kymo::daemon {

// One recording of the daemon, from its start to its stop: the stream, the last seconds of it in
// memory, and the daemon-wide file where one is asked for. What is recorded, and how often, stays
// the same all that time.
//
// Threads:   every member from any thread; troubles() and new_warnings() from one, start() before
// all others. Ownership: refers to the registry, which must outlive it.
class RecorderRun {
 public:
  // Starts nothing.
  RecorderRun(const Registry& registry, const Config& config);

  // Errors: unknown metrics, and what opening the daemon-wide file gives.
  Result<void> start();
  // Finishes every recording with the rows there are. Errors: the daemon-wide file's.
  Result<void> stop() { return profiler_.stop(); }
  [[nodiscard]] bool running() const { return profiler_.running(); }

  // What is recorded; known once started.
  [[nodiscard]] const RecordingInfo& info() const { return info_; }
  // The daemon-wide file; empty: there is none.
  [[nodiscard]] const std::string& log_path() const { return log_path_; }
  // Now, on the recording's clock, and a moment of CLOCK_MONOTONIC on it; before its start: 0.
  [[nodiscard]] std::uint64_t now_ns() const { return profiler_.now_ns(); }
  [[nodiscard]] std::uint64_t on_clock(std::uint64_t monotonic_ns) const;
  // Now, or where it ended.
  [[nodiscard]] std::uint64_t end_ns() const {
    return running() ? now_ns() : profiler_.stats().duration_ns;
  }
  // How far back a snapshot reaches once that long has been recorded, and how far back now.
  [[nodiscard]] std::chrono::nanoseconds kept() const;
  [[nodiscard]] std::chrono::nanoseconds reach() const;
  // Gives the rows from `from_ns` on that are in memory, oldest first and to the newest, piece by
  // piece. Cost: copies them; nobody waits.
  void read(std::uint64_t from_ns, const std::function<void(const Rows&)>& each) const;
  // Whether rows have begun to be lost since the last look, or no longer are.
  [[nodiscard]] std::vector<Trouble> troubles() { return watch_.look(); }
  // The profiler's warnings that this has not returned before.
  [[nodiscard]] std::vector<std::string> new_warnings();

  [[nodiscard]] const Profiler& profiler() const { return profiler_; }
  [[nodiscard]] History& history() const { return *history_; }
  [[nodiscard]] Snapshots& snapshots() const { return *snapshots_; }

  // Requests that are being recorded, and until when rows are wanted of those that have ended.
  std::atomic<int> requests{0};
  std::atomic<std::uint64_t> wanted_until_ns{0};

 private:
  const std::shared_ptr<History> history_;
  const std::shared_ptr<Snapshots> snapshots_;
  const std::string log_path_;
  Profiler profiler_;
  TroubleWatch watch_;
  std::size_t warnings_told_ = 0;
  RecordingInfo info_;
};

}  // namespace kymo::daemon
