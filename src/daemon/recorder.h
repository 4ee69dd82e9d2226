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

#include "daemon/config.h"
#include "daemon/recorder_run.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "kymo/trouble.h"
#include "sampling/current_profiler.h"

namespace kymo::daemon {

// The recording of one request, cut from the daemon's stream. Empty where nothing is recorded;
// every member is then without effect.
//
// Threads: mark() from any thread; nobody waits for files. Ownership: shares the run that it is cut
// from, which is not stopped by anybody's wish before end().
class RequestRecording {
 public:
  RequestRecording() = default;

  // A named instant, now.
  void mark(std::string_view name);
  // The request has ended; rows of another second follow. `about` joins what began it. Errors: why
  // there is no recording, where its files could not be created; path() is empty then.
  Result<void> end(nlohmann::json about);
  // The recording's .tsv; empty where there is none.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class Recorder;
  RequestRecording(std::shared_ptr<RecorderRun> run, History::CutId cut, std::string path,
                   std::shared_ptr<void> claim)
      : run_(std::move(run)), cut_(cut), path_(std::move(path)), claim_(std::move(claim)) {}

  std::shared_ptr<RecorderRun> run_;
  History::CutId cut_ = 0;
  std::string path_;
  std::shared_ptr<void> claim_;  // counts as a request that is being recorded
};

enum class RecorderAction : std::uint8_t { start, stop, set };

// What another recording is to have; none: as it was.
struct RecorderChange {
  std::optional<std::uint64_t> interval_us;
  std::string metrics;  // as of --profiling-metrics; empty: as they were
  std::string log;      // path of the daemon-wide file; empty: as it was

  [[nodiscard]] bool empty() const { return !interval_us && metrics.empty() && log.empty(); }
};

struct TakenSnapshot {
  std::string path;                    // of its .tsv
  std::chrono::nanoseconds before{0};  // how far back it reaches, at most what was asked for
  std::string note;  // why that is less than what was asked for, a line; empty: it is not
};

// Samples the daemon's metrics all the time and keeps the last seconds, out of which each request
// gets a recording of its own; a daemon-wide file besides where one is asked for.
//
// Threads:   every member from any thread; controls wait for each other.
// Ownership: refers to the registry, which must outlive it.
class Recorder {
 public:
  // Registers the recorder's own metrics, so that it records itself. Starts nothing.
  static Result<std::unique_ptr<Recorder>> make(Registry& registry, const Config& config);
  ~Recorder();

  // Records what the configuration asks for. Errors: those of RecorderRun::start().
  Result<void> start();
  // For good. Finishes every recording with the rows there are.
  Result<void> stop();

  // What somebody wishes meanwhile. A recording that ends is whole, and what follows is another: a
  // new file, a clock of its own. Waits, at most about a second, for the rows that a request wants
  // after its end. Errors: invalid_argument, not_found for an unknown metric; failed_precondition
  // for a start of what runs or a stop of what does not, and while a request is being recorded;
  // those of start(), and then what ran before runs again where it can.
  Result<void> control(RecorderAction action, const RecorderChange& change);

  // Begins a recording at `path` with the rows from a second before `from_ns` of CLOCK_MONOTONIC;
  // `own` stand in it in place of the daemon's totals. Returns before the files are there. Waits
  // while a control ends one run and begins another, a second at most. Errors: those of
  // History::begin(); unavailable where that second was not enough.
  Result<RequestRecording> begin(std::string path, std::uint64_t from_ns, nlohmann::json about,
                                 std::shared_ptr<OwnColumns> own = nullptr);

  // A recording of what was just before and comes just after, at a path that the reply names.
  // Errors: failed_precondition where nothing is recorded, and those of Snapshots.
  Result<TakenSnapshot> snapshot(const SnapshotRequest& request, bool wait);

  // What is recorded; null: nothing.
  [[nodiscard]] std::shared_ptr<const RecorderRun> running() const;
  [[nodiscard]] bool recording() const { return running() != nullptr; }
  // The same, or else what was recorded last; null: nothing ever was.
  [[nodiscard]] std::shared_ptr<const RecorderRun> latest() const;
  // What is recorded, or would be: the flags, and what was set since.
  [[nodiscard]] Config settings() const;
  // Whether rows have begun to be lost since the last look, or no longer are; one thread.
  [[nodiscard]] std::vector<Trouble> troubles();
  // What the recording goes on without, such as a priority that the system refused; each once.
  [[nodiscard]] std::vector<std::string> new_warnings();

 private:
  explicit Recorder(const Registry& registry, const Config& config)
      : registry_(registry), settings_(config) {}
  Result<Config> changed(const RecorderChange& change) const;
  Result<void> begin_run(const Config& settings);
  Result<void> end_run();
  Result<void> wait_until_free(const RecorderRun& run);
  void let_requests_go_on();

  const Registry& registry_;
  CurrentProfiler current_;
  std::mutex control_mutex_;  // held by whoever starts or stops a run
  bool over_ = false;         // guarded by control_mutex_: stopped for good
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable run_changed_;
  std::shared_ptr<RecorderRun> run_;  // the newest; null: none yet
  Config settings_;
  bool changing_ = false;  // one run ends and perhaps another begins: requests wait
};

}  // namespace kymo::daemon
