#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

struct FlightRecorderOptions {
  // Keep the rows of at least this time, or of as much time as fits into 64 MiB.
  std::chrono::nanoseconds keep{10'000'000'000};
  // The folder for snapshots whose request names none. It is made when the first snapshot is
  // written. Empty: the working directory at start(), and so for a relative path.
  std::string directory{};
  // The most snapshots in `directory`. Beyond it, the oldest are removed, but never one that is
  // being written. If as many as this are being written at once, no further one is begun until one
  // is whole: of a storm shorter than `after`, the first snapshots are kept. There is no limit if
  // `directory` is empty.
  std::size_t max_snapshots = 32;
  // Conditions that take a snapshot automatically (docs/record.md). A rule sees a row when
  // the slot of the row is handed over, so up to ProfilerOptions::flush late. One on the value of a
  // gauge that is true in the first row fires at once.
  std::vector<std::string> rules{};
  // The time before and after the row at which the rule fired that its snapshot contains, as in
  // SnapshotRequest. If `before` is longer than kept(), snapshots reach back less far, and
  // Profiler::warnings() says so.
  std::chrono::nanoseconds before{5'000'000'000};
  std::chrono::nanoseconds after{1'000'000'000};  // at most ten minutes
  // Called when a rule has begun a snapshot, or with the reason why it could not. If the disk then
  // does not take the whole snapshot, it is called once more, with this error. It runs on the
  // thread that writes the snapshot, so several calls may run at once. If this thread cannot be
  // started, or too many snapshots are being written, it runs on the recorder's writer thread. If
  // it throws, the snapshot is written all the same, and Profiler::stop() fails with the first
  // exception. It must not stop its profiler: Profiler::stop() refuses that.
  std::function<void(const std::string& rule, const Result<std::string>& path)> fired{};
};

// The snapshot to take. Times are relative to now.
struct SnapshotRequest {
  std::chrono::nanoseconds before{5'000'000'000};  // limited by FlightRecorder::kept()
  std::chrono::nanoseconds after{1'000'000'000};   // at most ten minutes; not 0 if `before` is 0
  std::string directory{};                         // empty: the recorder's; otherwise it must exist
  std::string reason = "request";                  // written to the metadata
};

// A sink that keeps the newest rows in fixed memory and writes a file only on request. A snapshot
// is a recording of the rows around one moment. Recording goes on while a snapshot is written.
//
// Threads: the functions of Sink as Sink says; snapshot() from any thread.
// Memory:  fixed by open().
// Disk:    at most max_snapshots recordings in the recorder's own folder.
// Errors:  open() fails if a rule does not parse or names an unknown column, or if `keep`, `before`
//          or `after` is negative, `after` is more than ten minutes, or `before` and `after` are
//          both 0. If a snapshot cannot
//          be written whole, recording goes on. Profiler::last_sink_error(), warnings() and
//          TroubleWatch then say how many such snapshots there are and why the first one failed,
//          and close(), and so Profiler::stop(), fails with data_loss. They also say how many
//          snapshots of rules were not begun because of max_snapshots; close() does not fail for
//          these. A request whose files cannot be created is not counted: snapshot() returns the
//          error.
class KYMO_API FlightRecorder : public Sink {
 public:
  explicit FlightRecorder(FlightRecorderOptions options);
  ~FlightRecorder() override;

  // Begins a snapshot and returns the path of its .tsv.
  // With `wait`, it returns when the snapshot is complete, which takes `after` and up to three
  // seconds. Without `wait`, it returns when the files are created, or when a disk has not answered
  // for a second. The metadata says when the snapshot has "ended", or "failed".
  // Errors: failed_precondition if the recorder is not running; invalid_argument if the request is
  //         out of range; resource_exhausted if max_snapshots are being written; those of creating
  //         the files.
  //         With `wait`, data_loss if the disk did not take all rows: how many, and the system's
  //         reason. The file then has the other rows.
  Result<std::string> snapshot(const SnapshotRequest& request, bool wait);
  // The time whose rows are kept at least; 0 unless the sink is open.
  [[nodiscard]] std::chrono::nanoseconds kept() const;
  // What the options ask for and the recorder cannot do, a line each; known when open() has
  // returned. Profiler::warnings() has them, too.
  [[nodiscard]] std::vector<std::string> warnings() const;

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  [[nodiscard]] LostRows lost_rows() const override;
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo
