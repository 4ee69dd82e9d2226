#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "daemon/metrics.h"
#include "daemon/progress.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A dump or restore as those see it who look at the daemon, on the board and in the metrics: it is
// over when this is, also where an exception ends it. What it counts goes into the daemon's totals
// and into columns of its own, which its recording has in place of those.
//
// Threads: one for begin and end, the one that runs the request; what it counts from any.
// Ownership: refers to board and metrics.
class RunningRequest {
 public:
  RunningRequest(ProgressBoard& board, Metrics& metrics, std::shared_ptr<RequestProgress> progress)
      : board_(board),
        metrics_(metrics),
        progress_(std::move(progress)),
        own_(metrics.make_own_columns()) {
    progress_->count_into(own_);
    metrics_.request_began(own_.get());
    own_of_thread = own_.get();
  }
  ~RunningRequest() {
    own_of_thread = nullptr;
    try {
      leave_board();
    } catch (...) {  // no memory is left: it stays on the board as one that runs
      told_ = true;
    }
  }
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;

  [[nodiscard]] RequestProgress& progress() { return *progress_; }
  [[nodiscard]] const std::shared_ptr<OwnColumns>& own_columns() const { return own_; }
  // Of the request that this thread runs; null: none.
  [[nodiscard]] static OwnColumns* on_this_thread() { return own_of_thread; }

  void notified(std::string_view notification) { metrics_.notified(notification, own_.get()); }
  void image_bytes_written(std::uint64_t bytes) { metrics_.image_bytes_written(bytes, own_.get()); }
  void add(const criu::DumpStats& stats) { metrics_.add(stats, own_.get()); }
  void add(const criu::RestoreStats& stats) { metrics_.add(stats, own_.get()); }
  void dump_ended(RequestResult result) { metrics_.dump_ended(result, own_.get()); }
  void restore_ended(RequestResult result) { metrics_.restore_ended(result, own_.get()); }

  // How it ended. What is left is to write that down.
  void ended(Result<void> outcome) {
    outcome_ = std::move(outcome);
    told_ = true;
    work_over();
  }

 private:
  void leave_board() {
    if (outcome_.ok() && !told_) outcome_ = Error{Code::internal, "kymod failed: its log says why"};
    work_over();
    board_.end(progress_, outcome_);
  }
  void work_over() {
    if (std::exchange(works_, false)) metrics_.request_ended(own_.get());
  }

  // CRIU's calls are counted deep below, on the thread of the request that makes them.
  static inline thread_local OwnColumns* own_of_thread = nullptr;

  ProgressBoard& board_;
  Metrics& metrics_;
  std::shared_ptr<RequestProgress> progress_;
  std::shared_ptr<OwnColumns> own_;
  Result<void> outcome_;
  bool told_ = false;
  bool works_ = true;
};

}  // namespace kymo::daemon
