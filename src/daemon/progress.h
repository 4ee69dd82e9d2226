#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "daemon/metrics.h"
#include "daemon/rate_meter.h"
#include "kymo/result.h"

namespace kymo::daemon {

// How far one request has come.
//
// Threads:   every member from any thread. Cost: a short lock.
// Ownership: refers to the sums.
class RequestProgress {
 public:
  RequestProgress(v1::Progress::Kind kind, std::string id, ProgressSums& sums);

  [[nodiscard]] const std::string& id() const { return id_; }
  // Its bytes and pages go into these columns of its recording as well.
  void count_into(std::shared_ptr<OwnColumns> own);
  void set_target(std::int32_t pid, std::string_view job);
  void set_directory(std::string_view directory);
  void set_forecast(std::string_view text);
  // CRIU passed this point.
  void notified(std::string_view notification);
  // CRIU has ended; what is left is ours.
  void finishing();
  // Bytes of images that there will be.
  void expect(std::uint64_t bytes);
  // Bytes of images so far before compression, and those of them that are memory pages; a smaller
  // figure than before is ignored.
  void moved(std::uint64_t bytes, std::uint64_t page_bytes, v1::Progress::Source source);
  // Bytes on disk so far.
  void stored(std::uint64_t bytes);
  // It is over; of a success the total becomes what was done.
  void end(const Result<void>& outcome);

  // The phases that it went through, each with its begin on CLOCK_MONOTONIC; the last one is now's,
  // and of an ended request its end.
  struct PhaseBegin {
    std::string phase;
    std::uint64_t at_ns = 0;
  };
  [[nodiscard]] std::vector<PhaseBegin> phases() const;

  // By which it is ended from without.
  [[nodiscard]] Cancellation& cancellation() { return cancellation_; }

  [[nodiscard]] v1::Progress view(std::uint64_t now_ns = monotonic_ns()) const;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool matches(const v1::WatchRequest& request) const;

 private:
  [[nodiscard]] std::string_view phase() const;
  // To be called where it may have changed.
  void note_phase();
  void estimate(v1::Progress& out, std::uint64_t now_ns) const;
  // Brings the sums up to date with what this request stands for.
  void add_up();

  const std::string id_;
  const std::uint64_t began_ns_ = monotonic_ns();
  const std::int64_t began_unix_ns_ = unix_ns();
  ProgressSums& sums_;
  Cancellation cancellation_;

  mutable std::mutex mutex_;
  v1::Progress facts_;  // what was said; the rest is worked out by view()
  std::uint64_t page_bytes_ = 0;
  std::uint64_t ended_ns_ = 0;
  bool finishing_ = false;
  std::shared_ptr<OwnColumns> own_;  // null: none
  std::vector<PhaseBegin> phases_;
  RateMeter rate_;
  struct {
    std::uint64_t done = 0;
    std::uint64_t remaining = 0;
    std::uint64_t pages = 0;
  } counted_;  // in the sums
};

// The requests that run, and the last ones that did.
//
// Threads:   every member from any thread.
// Ownership: refers to the sums, which outlive it and every RequestProgress that it gave.
class ProgressBoard {
 public:
  // What a watcher costs is a thread: more than these are refused.
  static constexpr int kMostWatchers = 32;
  static constexpr std::size_t kLongestId = 64;

  explicit ProgressBoard(ProgressSums& sums) : sums_(sums) {}

  // Errors: invalid_argument for an id that is too long; already_exists: a running request has it.
  Result<std::shared_ptr<RequestProgress>> begin(v1::Progress::Kind kind, std::string id);
  // Ends it, and wakes who watches.
  void end(const std::shared_ptr<RequestProgress>& request, const Result<void>& outcome);
  // How many requests have ended so far.
  [[nodiscard]] std::uint64_t ended() const;
  // Those that run of this request_id; else those of this job's name, or pid.
  [[nodiscard]] std::vector<std::shared_ptr<RequestProgress>> running_of(
      const std::string& target) const;
  // Oldest first: those that run, and of those that ended when `ended_before` had, the last few.
  [[nodiscard]] std::vector<std::shared_ptr<RequestProgress>> matching(
      const v1::WatchRequest& request, std::uint64_t ended_before) const;

  // Waits until a request begins or ends, stop() is called, or the time is there.
  void wait_until(std::chrono::steady_clock::time_point time, std::uint64_t& seen);
  // No request will come any more.
  void stop();
  [[nodiscard]] bool stopped() const;

  // One of the few that may watch; false: there are too many.
  bool enter_watcher();
  void leave_watcher();

 private:
  static constexpr std::size_t kEndedKept = 32;

  ProgressSums& sums_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_count_ = 0;  // the newest of `ended_` is the last of so many
  bool stopped_ = false;
  std::vector<std::shared_ptr<RequestProgress>> running_;
  std::deque<std::shared_ptr<RequestProgress>> ended_;
  std::atomic<int> watchers_{0};
};

}  // namespace kymo::daemon
