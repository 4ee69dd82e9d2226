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
  // The rows of so long are kept, or of as long as fits into 64 MiB.
  std::chrono::nanoseconds keep{10'000'000'000};
  // Where snapshots go that do not name a folder; made when the first is written. Empty: the
  // working directory.
  std::string directory{};
  // Beyond so many in `directory`, the oldest are removed first.
  std::size_t max_snapshots = 32;
  // Conditions that make a snapshot by themselves (docs/flight-recorder.md). They see rows when a
  // slot is handed over, so up to ProfilerOptions::flush late.
  std::vector<std::string> rules{};
  // What a rule's snapshot holds around the row at which it fired.
  std::chrono::nanoseconds before{5'000'000'000};
  std::chrono::nanoseconds after{1'000'000'000};
  // Told of each snapshot that a rule has begun, or why it could not; on the thread that writes the
  // snapshot, so perhaps by several at once.
  std::function<void(const std::string& rule, const Result<std::string>& path)> fired{};
};

// What a snapshot is made of; times are relative to now.
struct SnapshotRequest {
  std::chrono::nanoseconds before{5'000'000'000};  // at most what is kept
  std::chrono::nanoseconds after{1'000'000'000};   // at most ten minutes
  std::string directory{};                         // empty: the recorder's; else it must exist
  std::string reason = "request";                  // stands in the metadata
};

// A sink that writes nothing until it is asked to: it keeps the newest rows in fixed memory, and
// writes those around an instant out as a recording, while recording goes on.
//
// Threads:   the Sink part as Sink says; snapshot() from any thread.
// Memory:    fixed by open(). Disk: at most max_snapshots recordings in the recorder's own folder.
// Errors:    open(): a rule that does not parse or names no column. A snapshot that cannot be
//            written is given up alone.
class KYMO_API FlightRecorder : public Sink {
 public:
  explicit FlightRecorder(FlightRecorderOptions options);
  ~FlightRecorder() override;

  // Begins a snapshot and returns the path of its .tsv. With `wait`, once it is whole, which takes
  // `after` and up to three seconds; without, once its files are created or a disk has not answered
  // for a second, and its metadata says when it has "ended".
  Result<std::string> snapshot(const SnapshotRequest& request, bool wait);
  // The time that is kept at least, known once open.
  [[nodiscard]] std::chrono::nanoseconds kept() const;

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo
