#include "kymo/flight_recorder.h"

#include <utility>

#include "sampling/snapshots.h"

namespace kymo {

struct FlightRecorder::State {
  explicit State(FlightRecorderOptions options)
      : history(std::make_shared<History>(options.keep)), snapshots(history, std::move(options)) {}

  std::shared_ptr<History> history;
  Snapshots snapshots;
};

FlightRecorder::FlightRecorder(FlightRecorderOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
FlightRecorder::~FlightRecorder() = default;

Result<std::string> FlightRecorder::snapshot(const SnapshotRequest& request, bool wait) {
  return state_->snapshots.snapshot(request, wait);
}

std::chrono::nanoseconds FlightRecorder::kept() const {
  return state_->history->kept();
}

Result<void> FlightRecorder::open(const RecordingInfo& info) {
  if (Result<void> opened = state_->snapshots.open(info); !opened) {
    return opened;
  }
  return state_->history->open(info);
}

Result<void> FlightRecorder::write(const Rows& rows) {
  Result<void> kept = state_->history->write(rows);
  state_->snapshots.pass(rows);
  return kept;
}

void FlightRecorder::gap(const Gap& gap) {
  state_->history->gap(gap);
}

void FlightRecorder::progress(const ProfilerStats& stats) {
  state_->history->progress(stats);
}

Result<void> FlightRecorder::close(const ProfilerStats& stats) {
  return state_->history->close(stats);
}

}  // namespace kymo
