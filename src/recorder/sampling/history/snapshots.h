#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kymo/flight_recorder.h"
#include "recorder/sampling/history/cut_sink.h"
#include "recorder/sampling/history/rule.h"

namespace kymo {

// A sink that passes its rows to a CutSink, and cuts snapshots out of it: on request, and when a
// rule fires on a row.
//
// Threads:   the functions of Sink as Sink says; snapshot() from any thread.
// Ownership: shares the CutSink.
class Snapshots : public Sink {
 public:
  static constexpr std::chrono::nanoseconds kMaxAfter = std::chrono::minutes(10);

  Snapshots(std::shared_ptr<CutSink> cuts, FlightRecorderOptions options);

  // Without `wait`, waits at most one second for the files to be created.
  Result<std::string> snapshot(const SnapshotRequest& request, bool wait);

  // FlightRecorder::warnings().
  [[nodiscard]] std::vector<std::string> warnings() const;

  // Errors: also those of a rule that does not parse or names an unknown column, and of the times
  //         in the options.
  Result<void> open(const RecordingInfo& info) override;
  // Does not wait for files.
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override { cuts_->progress(stats); }
  // The snapshots that could not be written, or not whole, and those of rules that were not begun.
  [[nodiscard]] LostRows lost_rows() const override;
  // Errors: also data_loss if a snapshot could not be written whole, and what FlightRecorderOptions::fired has
  // thrown.
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct Span {
    std::uint64_t from_ns = 0;
    std::uint64_t at_ns = 0;
    std::uint64_t until_ns = 0;
  };

  struct Folder;
  struct Place;
  // How the rule of a snapshot is told of its beginning, or of its end if that is an error.
  using Told = std::function<void(const Result<void>& outcome)>;

  // Checks the rules on rows that the CutSink has already.
  void check_rules(const Rows& rows);
  void fire(const Rule& rule, std::uint64_t at_ns);
  // Counts what it could not begin, if a rule is to be told.
  Result<CutSink::CutId> begin(const std::string& path, const Span& span, nlohmann::json about,
                               const Told& told);

  std::shared_ptr<CutSink> cuts_;
  std::shared_ptr<Folder> folder_;
  std::vector<Rule> rules_;
  std::deque<std::uint64_t>
      stops_;  // ends of gaps in which the program stood still; no row is after them yet
  std::uint64_t start_monotonic_ns_ = 0;
  std::atomic<std::uint64_t> newest_ns_{0};  // time of the newest row
};

}  // namespace kymo
