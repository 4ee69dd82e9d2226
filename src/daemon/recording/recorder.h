#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/recording/recorder_run.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/trouble.h"
#include "recorder/sampling/profiler/current_profiler.h"

namespace kymo::daemon {

// The recording of one request, cut from the rows that the daemon samples. If nothing is recorded,
// the object is empty and its members do nothing.
//
// Threads:   mark() from any thread. No member waits for files.
// Ownership: shares the run from which it is cut. Recorder::control() does not stop that run before
//            end().
class RequestRecording {
 public:
  RequestRecording() = default;

  // Marks the present time with a name.
  void mark(std::string_view name);
  // The request has ended. The recording gets the rows of one more second. `about` is added to the
  // `about` of Recorder::begin().
  // Errors: the files could not be created; path() is empty then.
  Result<void> end(nlohmann::json about);
  // The .tsv file of the recording; empty if there is none.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class Recorder;
  RequestRecording(std::shared_ptr<RecorderRun> run, CutSink::CutId cut, std::string path,
                   std::shared_ptr<void> claim)
      : run_(std::move(run)), cut_(cut), path_(std::move(path)), claim_(std::move(claim)) {}

  std::shared_ptr<RecorderRun> run_;
  CutSink::CutId cut_ = 0;
  std::string path_;
  std::shared_ptr<void> claim_;  // while it lives, RecorderRun::requests counts this request
};

enum class RecorderAction : std::uint8_t { start, stop, set };

// Changed settings for the next recording. Members that are not set keep their setting.
struct RecorderChange {
  std::optional<std::uint64_t> interval_us;
  std::string metrics;  // in the form of --profiling-metrics; empty: no change
  std::string log;      // path of the daemon-wide file; empty: no change

  [[nodiscard]] bool empty() const { return !interval_us && metrics.empty() && log.empty(); }
};

struct TakenSnapshot {
  std::string path;                    // of its .tsv
  std::chrono::nanoseconds before{0};  // how far back it reaches, at most what was asked for
  std::string note;  // if `before` is less than was asked for, a line that says why; else empty
};

// Samples the daemon's metrics all the time and keeps the rows of the last seconds in memory. From
// these rows it cuts a recording for each request. If the configuration asks for it, it also writes
// a daemon-wide recording.
//
// Threads:   every member from any thread; calls of control() wait for each other.
// Ownership: refers to the registry, which must outlive it.
class Recorder {
 public:
  // Registers the recorder's own metrics, so that it records itself. Starts nothing.
  static Result<std::unique_ptr<Recorder>> make(Registry& registry, const Config& config);
  ~Recorder();

  // Records what the configuration asks for. Errors: those of RecorderRun::start().
  Result<void> start();
  // Stops for good. Finishes every recording with the rows that exist. That rows or ticks are
  // missing is logged and no error.
  // Errors: those of Profiler::stop(), except data_loss.
  Result<void> stop();

  // Starts, stops or changes the recording, as a user asks for it. The recording that ends is
  // complete, except for rows that were lost, which is logged and no error. The next one is a new
  // recording with a new file and a new clock. Waits at most about a second for the rows that a
  // request wants after its end.
  // Errors: invalid_argument; not_found for an unknown metric; failed_precondition for a start
  //         while it runs, for a stop while it does not run, and while a request is being recorded;
  //         unavailable after stop(); those of stop(); those of start(): then the earlier recording's
  //         settings are started again, if that is possible.
  Result<void> control(RecorderAction action, const RecorderChange& change);

  // Begins a recording at `path`, with the rows from one second before `from_ns` (CLOCK_MONOTONIC).
  // In this recording the columns `own` replace the daemon's totals. Returns before the files
  // exist. If control() is changing the recording, begin() waits for it, at most one second.
  // Errors: those of CutSink::begin(); unavailable if that second was not enough.
  Result<RequestRecording> begin(std::string path, std::uint64_t from_ns, nlohmann::json about,
                                 std::shared_ptr<OwnColumns> own = nullptr);

  // Takes a snapshot: a recording of the time just before and just after now. The result names its
  // path.
  // Errors: failed_precondition if nothing is recorded; those of Snapshots.
  Result<TakenSnapshot> snapshot(const SnapshotRequest& request, bool wait);

  // The recording that runs; null if none runs.
  [[nodiscard]] std::shared_ptr<const RecorderRun> running() const;
  [[nodiscard]] bool recording() const { return running() != nullptr; }
  // The recording that runs, or else the last one; null if there never was one.
  [[nodiscard]] std::shared_ptr<const RecorderRun> latest() const;
  // The settings of this recording or of the next one: the flags, and what control() has changed.
  [[nodiscard]] Config settings() const;
  // Reports if rows have begun to be lost since the last call, or are no longer lost.
  // Threads: one.
  [[nodiscard]] std::vector<Trouble> troubles();
  // What the recording has to do without, such as a priority that the system refused. Each warning
  // is returned once.
  [[nodiscard]] std::vector<std::string> new_warnings();

 private:
  explicit Recorder(const Registry& registry, const Config& config)
      : registry_(registry), settings_(config) {}
  Result<Config> changed(const RecorderChange& change) const;
  Result<void> begin_run(const Config& settings);
  Result<void> end_run();
  Result<void> wait_until_free(const RecorderRun& run);
  void end_change();

  const Registry& registry_;
  CurrentProfiler current_;
  std::mutex control_mutex_;  // held while a run is started or stopped
  bool over_ = false;         // guarded by control_mutex_: stopped for good
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable run_changed_;
  std::shared_ptr<RecorderRun> run_;  // the newest; null: none yet
  Config settings_;
  bool changing_ = false;  // control() ends a run and perhaps begins another: requests wait
};

}  // namespace kymo::daemon
