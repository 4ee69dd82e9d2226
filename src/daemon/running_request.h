#pragma once

#include <memory>
#include <utility>

#include "daemon/metrics.h"
#include "daemon/progress.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A dump or restore as those see it who look at the daemon, on the board and in the metrics: it is
// over when this is, also where an exception ends it.
//
// Threads: one. Ownership: refers to board and metrics.
class RunningRequest {
 public:
  RunningRequest(ProgressBoard& board, Metrics& metrics, std::shared_ptr<RequestProgress> progress)
      : board_(board), metrics_(metrics), progress_(std::move(progress)) {
    metrics_.request_began();
  }
  ~RunningRequest() {
    if (outcome_.ok() && !told_) outcome_ = Error{Code::internal, "kymod failed: its log says why"};
    work_over();
    board_.end(progress_, outcome_);
  }
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;

  [[nodiscard]] RequestProgress& progress() { return *progress_; }
  // How it ended. What is left is to write that down.
  void ended(Result<void> outcome) {
    outcome_ = std::move(outcome);
    told_ = true;
    work_over();
  }

 private:
  void work_over() {
    if (std::exchange(works_, false)) metrics_.request_ended();
  }

  ProgressBoard& board_;
  Metrics& metrics_;
  std::shared_ptr<RequestProgress> progress_;
  Result<void> outcome_;
  bool told_ = false;
  bool works_ = true;
};

}  // namespace kymo::daemon
