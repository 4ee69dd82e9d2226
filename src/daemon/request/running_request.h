#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "daemon/recording/metrics.h"
#include "daemon/request/progress.h"
#include "kymo/result.h"

namespace kymo::daemon {

// Shows a dump or restore as running, on the board and in the metrics, until the destructor. So an
// exception ends it as well. It counts into the daemon's totals and into the request's own columns,
// which replace the totals in the recording of the request.
//
// Threads:   the constructor, ended() and the destructor on the thread that runs the request; the
//            counting members from any thread.
// Ownership: refers to the board and the metrics.
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
    } catch (...) {  // no memory is left: the board goes on showing the request as running
      has_outcome_ = true;
    }
  }
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;

  [[nodiscard]] RequestProgress& progress() { return *progress_; }
  [[nodiscard]] const std::shared_ptr<OwnColumns>& own_columns() const { return own_; }
  // The own columns of the request that this thread runs; null if it runs none.
  [[nodiscard]] static OwnColumns* on_this_thread() { return own_of_thread; }

  void notified(std::string_view notification) { metrics_.notified(notification, own_.get()); }
  void image_bytes_written(std::uint64_t bytes) { metrics_.image_bytes_written(bytes, own_.get()); }
  void add(const criu::DumpStats& stats) { metrics_.add(stats, own_.get()); }
  void add(const criu::RestoreStats& stats) { metrics_.add(stats, own_.get()); }
  void dump_ended(RequestResult result) { metrics_.dump_ended(result, own_.get()); }
  void restore_ended(RequestResult result) { metrics_.restore_ended(result, own_.get()); }

  // Sets how the request ended. Only saving the result is left to do.
  void ended(Result<void> outcome) {
    outcome_ = std::move(outcome);
    has_outcome_ = true;
    count_as_ended();
  }

 private:
  void leave_board() {
    if (outcome_.ok() && !has_outcome_) {
      outcome_ = Error{Code::internal, "kymod failed: its log says why"};
    }
    count_as_ended();
    board_.end(progress_, outcome_);
  }
  void count_as_ended() {
    if (std::exchange(running_, false)) metrics_.request_ended(own_.get());
  }

  // Calls of CRIU are counted in code that does not know the request. That code runs on the
  // request's thread.
  static inline thread_local OwnColumns* own_of_thread = nullptr;

  ProgressBoard& board_;
  Metrics& metrics_;
  std::shared_ptr<RequestProgress> progress_;
  std::shared_ptr<OwnColumns> own_;
  Result<void> outcome_;
  bool has_outcome_ = false;
  bool running_ = true;
};

}  // namespace kymo::daemon
