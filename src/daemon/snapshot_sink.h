#pragma once

#include <memory>

#include "kymo/sink.h"
#include "sampling/history.h"
#include "sampling/snapshots.h"

namespace kymo::daemon {

// Passes rows to the memory from which recordings are cut, and to the snapshots, which check the
// rules.
//
// Threads:   as Sink.
// Ownership: shares both.
// Errors:    open(): a rule names no column.
class SnapshotSink : public Sink {
 public:
  SnapshotSink(std::shared_ptr<History> history, std::shared_ptr<Snapshots> snapshots)
      : history_(std::move(history)), snapshots_(std::move(snapshots)) {}

  Result<void> open(const RecordingInfo& info) override {
    if (Result<void> opened = snapshots_->open(info); !opened) return opened;
    return history_->open(info);
  }
  Result<void> write(const Rows& rows) override {
    Result<void> kept = history_->write(rows);
    snapshots_->pass(rows);
    return kept;
  }
  void gap(const Gap& gap) override { history_->gap(gap); }
  void progress(const ProfilerStats& stats) override { history_->progress(stats); }
  Result<void> close(const ProfilerStats& stats) override { return history_->close(stats); }

 private:
  const std::shared_ptr<History> history_;
  const std::shared_ptr<Snapshots> snapshots_;
};

}  // namespace kymo::daemon
