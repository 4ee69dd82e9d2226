#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kymo::daemon {

// How requests ended, on /metrics. How many dumps and restores failed or were refused for which reason: kymo_failures_total and
// kymo_refusals_total, both {request,reason}, where `reason` is an id of docs/errors.md. Reasons that did not occur are
// not shown, except for those that have an alert: Prometheus sees no increase where a series begins. They are
// no columns of recordings, because there are a hundred of them.
//
// And how many requests for the same job or container were refused since one succeeded:
// kymo_refused_in_a_row{request,target}. A target is shown until a request for it succeeds, and for kShownFor after the
// last refusal, so that a target that is gone does not fire an alert for ever.
//
// And when a request for a job or container last succeeded, and how long it took:
// kymo_last_success_timestamp_seconds{request,target}, kymo_last_success_duration_seconds{request,target}. They are
// shown until the job is removed, of the kMaxRows targets that succeeded last.
//
// Threads: any.
class OutcomeCounts : public prometheus::Collectable {
 public:
  // A week and a day, so that the refusals of a weekly dump add up.
  static constexpr std::int64_t kShownFor = 8LL * 24 * 3600 * 1'000'000'000;  // nanoseconds

  OutcomeCounts();
  // `request`: "dump" or "restore". It failed after it was begun.
  void failed(std::string_view request, std::string_view reason);
  // It was refused. `target`: the owner of its history (store::Run::owner), if that is a job or a container. A command
  // line may have secrets, and /metrics needs no token. Empty: it is not shown.
  void refused(std::string_view request, std::string_view reason, std::string_view target,
               std::int64_t at_unix_ns);
  struct Success {
    std::int64_t at_unix_ns = 0;  // its end
    std::uint64_t duration_ns = 0;
  };
  // Also for one that an earlier kymod has left in the history.
  void succeeded(std::string_view request, std::string_view target, const Success& success);
  // Continues the row of refusals that an earlier kymod has left in the history.
  void continue_row(std::string_view request, std::string_view target, std::uint64_t refusals,
                    std::int64_t last_unix_ns);
  // The job was removed.
  void forget(std::string_view target);
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  using Key = std::pair<std::string, std::string>;
  struct Row {
    std::uint64_t refusals = 0;
    std::int64_t last_unix_ns = 0;
  };

  mutable std::mutex mutex_;
  // All guarded by mutex_:
  std::map<Key, std::uint64_t> counts_;    // by request and reason
  std::map<Key, std::uint64_t> refusals_;  // the same
  std::map<Key, Row> rows_;                // by request and target
  std::map<Key, Success> successes_;       // the last ones, by the same
};

}  // namespace kymo::daemon
