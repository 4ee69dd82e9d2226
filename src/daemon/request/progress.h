#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "daemon/recording/metrics.h"
#include "daemon/request/rate_meter.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The progress of one request.
//
// Threads:   every member from any thread.
// Ownership: refers to the sums.
// Cost:      a short lock.
class RequestProgress {
 public:
  RequestProgress(v1::Progress::Kind kind, std::string id, ProgressSums& sums);

  [[nodiscard]] const std::string& id() const { return id_; }
  // Writes the bytes and pages into these columns of the request's recording as well.
  void count_into(std::shared_ptr<OwnColumns> own);
  void set_target(std::int32_t pid, std::string_view job);
  // The id and the name of the container, by which it can be found. Empty: there is none.
  void set_container(std::string id, std::string name);
  void set_directory(std::string_view directory);
  void set_forecast(std::string_view text);
  // CRIU sent this notification.
  void notified(std::string_view notification);
  // CRIU has got kymod's answer to it.
  void answered();
  // kymod begins to do this while CRIU waits for its answer. Empty: it has done it.
  void working(std::string_view what);
  // CRIU has ended; only kymod's own work is left.
  void finishing();
  // Sets the expected size of the images, in bytes.
  void expect(std::uint64_t bytes);
  // Sets the bytes of images so far, before compression, and how many of them are memory pages. The
  // call is ignored if `bytes` is smaller than before.
  void moved(std::uint64_t bytes, std::uint64_t page_bytes, v1::Progress::Source source);
  // Sets the bytes on disk so far.
  void stored(std::uint64_t bytes);
  // Ends the request. If it succeeded, the total becomes the number of bytes that were done.
  void end(const Result<void>& outcome);

  // The phases so far, each with its start on CLOCK_MONOTONIC. The last one is the present phase.
  // After the end of the request, the last one is "ended".
  struct PhaseBegin {
    std::string phase;
    std::uint64_t at_ns = 0;
  };
  [[nodiscard]] std::vector<PhaseBegin> phases() const;

  // Lets another thread cancel the request.
  [[nodiscard]] Cancellation& cancellation() { return cancellation_; }
  // Its caller was answered before its end, because its thread waits for a disk (Handover).
  void note_left() { caller_left_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool left() const { return caller_left_.load(std::memory_order_relaxed); }

  [[nodiscard]] v1::Progress view(std::uint64_t now_ns = monotonic_ns()) const;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool matches(const v1::WatchRequest& request) const;
  // Whether it is of this job, pid or container.
  [[nodiscard]] bool is_of(const std::string& target) const;

 private:
  [[nodiscard]] std::string_view phase() const;
  // To be called after every change that may change the phase.
  void note_phase();
  void estimate(v1::Progress& out, std::uint64_t now_ns) const;
  // Updates this request's part of the sums.
  void add_up();

  const std::string id_;
  const std::uint64_t began_ns_ = monotonic_ns();
  const std::int64_t began_unix_ns_ = unix_ns();
  ProgressSums& sums_;
  Cancellation cancellation_;
  std::atomic<bool> caller_left_{false};

  mutable std::mutex mutex_;
  v1::Progress facts_;  // what callers have set; view() computes the rest
  std::string container_id_;
  std::string container_name_;
  std::uint64_t page_bytes_ = 0;
  std::uint64_t ended_ns_ = 0;
  bool finishing_ = false;
  bool answered_ = true;             // CRIU waits for no answer
  std::string working_;              // what kymod does before it answers
  std::shared_ptr<OwnColumns> own_;  // null: none
  std::vector<PhaseBegin> phases_;
  RateMeter rate_;
  struct {
    std::uint64_t done = 0;
    std::uint64_t remaining = 0;
    std::uint64_t pages = 0;
  } counted_;  // this request's part of the sums
};

// The running requests, and the last ones that have ended.
//
// Threads:   every member from any thread.
// Ownership: refers to the sums, which must outlive it and every RequestProgress that it made.
class ProgressBoard {
 public:
  // Each watcher occupies a thread, so that more watchers than these are refused.
  static constexpr int kMaxWatchers = 32;
  static constexpr std::size_t kMaxId = 64;

  explicit ProgressBoard(ProgressSums& sums) : sums_(sums) {}

  // Adds a request; an empty id is replaced by a new one.
  // Errors: invalid_argument: the id is too long; already_exists: a running request has it.
  Result<std::shared_ptr<RequestProgress>> begin(v1::Progress::Kind kind, std::string id);
  // Ends the request, and wakes its watchers. Does nothing if the request has ended.
  void end(const std::shared_ptr<RequestProgress>& request, const Result<void>& outcome);
  // How many requests have ended so far.
  [[nodiscard]] std::uint64_t ended() const;
  // The running request with this request_id. If there is none, those of this target
  // (RequestProgress::is_of).
  [[nodiscard]] std::vector<std::shared_ptr<RequestProgress>> running_of(
      const std::string& target) const;
  // The requests that match, oldest first: those that ended after the first `ended_before` ones (as
  // far as they are kept), then those that run.
  [[nodiscard]] std::vector<std::shared_ptr<RequestProgress>> matching(
      const v1::WatchRequest& request, std::uint64_t ended_before) const;

  // Waits until a request begins or ends, until stop() is called, or until `time`. Returns at once
  // if something changed since the call that set `seen`.
  void wait_until(std::chrono::steady_clock::time_point time, std::uint64_t& seen);
  // Ends all waiting: no request will come any more.
  void stop();
  [[nodiscard]] bool stopped() const;

  // Runs this on a thread of its own.
  // Errors: unavailable: there is no thread left.
  Result<void> run_thread(std::function<void()> work);
  // Waits for these threads. Returns false if some still run: they wait for a disk.
  [[nodiscard]] bool wait_for_threads(std::chrono::milliseconds patience);

  // Counts a watcher. Returns false if there are too many already.
  bool enter_watcher();
  void leave_watcher();

 private:
  static constexpr std::size_t kEndedKept = 32;

  ProgressSums& sums_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  int threads_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_count_ = 0;  // of all requests that have ended, also those not in `ended_`
  bool stopped_ = false;
  std::vector<std::shared_ptr<RequestProgress>> running_;
  std::deque<std::shared_ptr<RequestProgress>> ended_;
  std::atomic<int> watchers_{0};
};

}  // namespace kymo::daemon
