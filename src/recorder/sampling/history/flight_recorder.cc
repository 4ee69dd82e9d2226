#include "kymo/flight_recorder.h"

#include <utility>

#include "recorder/sampling/history/snapshots.h"

namespace kymo {

struct FlightRecorder::State {
  explicit State(FlightRecorderOptions options)
      : cuts(std::make_shared<CutSink>(options.keep)), snapshots(cuts, std::move(options)) {}

  std::shared_ptr<CutSink> cuts;
  Snapshots snapshots;
};

FlightRecorder::FlightRecorder(FlightRecorderOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
FlightRecorder::~FlightRecorder() = default;

Result<std::string> FlightRecorder::snapshot(const SnapshotRequest& request, bool wait) {
  return state_->snapshots.snapshot(request, wait);
}

std::chrono::nanoseconds FlightRecorder::kept() const {
  return state_->cuts->kept();
}

std::vector<std::string> FlightRecorder::warnings() const {
  return state_->snapshots.warnings();
}

Result<void> FlightRecorder::open(const RecordingInfo& info) {
  return state_->snapshots.open(info);
}

Result<void> FlightRecorder::write(const Rows& rows) {
  return state_->snapshots.write(rows);
}

void FlightRecorder::gap(const Gap& gap) {
  state_->snapshots.gap(gap);
}

void FlightRecorder::progress(const ProfilerStats& stats) {
  state_->snapshots.progress(stats);
}

LostRows FlightRecorder::lost_rows() const {
  return state_->snapshots.lost_rows();
}

Result<void> FlightRecorder::close(const ProfilerStats& stats) {
  return state_->snapshots.close(stats);
}

}  // namespace kymo
