#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/trouble.h"
#include "sampling/history.h"
#include "sampling/snapshots.h"

namespace kymo::daemon {

// The recording of one request, cut from the daemon's stream. Empty where nothing is recorded;
// every member is then without effect.
//
// Threads: mark() from any thread. Ownership: refers to its Recorder's stream.
class RequestRecording {
 public:
  RequestRecording() = default;

  // A named instant, now.
  void mark(std::string_view name);
  // The request has ended; rows of another second follow. `about` joins what began it.
  void end(nlohmann::json about);
  // The recording's .tsv; empty where there is none.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class Recorder;
  RequestRecording(const Profiler& profiler, History& history, History::CutId cut, std::string path)
      : profiler_(&profiler), history_(&history), cut_(cut), path_(std::move(path)) {}

  const Profiler* profiler_ = nullptr;
  History* history_ = nullptr;
  History::CutId cut_ = 0;
  std::string path_;
};

// Samples the daemon's metrics all the time and keeps the last seconds, out of which each request
// gets a recording of its own; a daemon-wide file besides where one is asked for.
//
// Threads:   every member from any thread.
// Ownership: refers to the registry, which must outlive it.
// Errors:    start(): unknown metrics, and what opening the daemon-wide file gives.
class Recorder {
 public:
  // Registers the recorder's own metrics, so that it records itself. Starts nothing.
  static Result<std::unique_ptr<Recorder>> make(Registry& registry, const Config& config);

  Result<void> start();
  // Finishes every recording with the rows there are.
  Result<void> stop();

  // Now, on the recording's clock.
  [[nodiscard]] std::uint64_t now_ns() const;
  // Begins a recording at `path` with the rows from a second before `from_ns`.
  Result<RequestRecording> begin(std::string path, std::uint64_t from_ns, nlohmann::json about);

  // A recording of what was just before and comes just after, at a path that the reply names.
  // Errors: failed_precondition where nothing is recorded, and those of Snapshots.
  Result<std::string> snapshot(const SnapshotRequest& request, bool wait);
  // How far back a snapshot reaches.
  [[nodiscard]] std::chrono::nanoseconds kept() const;
  // What is recorded; none where nothing is.
  [[nodiscard]] std::optional<RecordingInfo> info() const;
  // Gives the rows from `from_ns` on that are in memory, oldest first and to the newest, piece by
  // piece. Cost: copies them; nobody waits.
  void read(std::uint64_t from_ns, const std::function<void(const Rows&)>& each) const;
  [[nodiscard]] std::vector<Gap> gaps_after(std::uint64_t from_ns) const;
  // Whether rows have begun to be lost since the last look, or no longer are; one thread.
  [[nodiscard]] std::vector<Trouble> troubles();

  [[nodiscard]] bool recording() const { return profiler_ != nullptr && profiler_->running(); }
  [[nodiscard]] ProfilerStats stats() const;
  [[nodiscard]] std::size_t ring_bytes() const;
  // What the recorder went on without (Profiler::warnings).
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  Recorder() = default;

  std::shared_ptr<History> history_;
  std::shared_ptr<Snapshots> snapshots_;
  std::unique_ptr<Profiler> profiler_;  // null: nothing is recorded
  std::optional<TroubleWatch> watch_;
};

}  // namespace kymo::daemon
