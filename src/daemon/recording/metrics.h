#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/criu/drive/stats.h"
#include "daemon/recording/outcome_counts.h"
#include "daemon/recording/standstills.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "profiler/kept/keeper.h"
#include "recorder/sampling/history/own_columns.h"

namespace kymo::daemon {

// The prefix of the names of kymod's metrics on /metrics.
inline constexpr const char* kPrometheusPrefix = "kymo_";

// CRIU's notifications, roughly in their order: first those of a dump, then those of a restore.
inline constexpr std::array<std::string_view, 15> kNotifications{
    "pre-stream",  "pre-dump",          "network-lock",          "network-unlock",  "post-dump",
    "pre-restore", "setup-namespaces",  "post-setup-namespaces", "post-restore",    "pre-resume",
    "post-resume", "orphan-pts-master", "status-ready",          "query-ext-files", "other"};

// Values of the gauge `phase`: kPhaseIdle if no request runs, kPhaseRequest before CRIU's first
// notification, then 2 plus the index in kNotifications of CRIU's last notification.
inline constexpr std::uint64_t kPhaseIdle = 0;
inline constexpr std::uint64_t kPhaseRequest = 1;
std::uint64_t phase_of(std::string_view notification);

// How a dump or restore ended. `refused`: the request was wrong or could not be fulfilled at that
// time, and nothing was begun. This is no failure of the daemon or of CRIU.
enum class RequestResult : std::uint8_t { ok, error, refused, cancelled };
inline constexpr std::array<std::string_view, 4> kRequestResults{"ok", "error", "refused",
                                                                 "cancelled"};
// `begun`: whether the runtime of the request was called.
RequestResult result_of(const Result<void>& outcome, bool begun);

// Sums over all running requests. They are the values of the gauges request_done_bytes,
// request_remaining_bytes and request_done_pages.
struct ProgressSums {
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<std::uint64_t> bytes_remaining{0};
  std::atomic<std::uint64_t> pages_done{0};
};

// The metrics of the daemon (docs/metrics.md lists them) and the registry that holds them. If a
// function is given `own`, it counts there as well: these are the columns of the request's own
// recording, from make_own_columns(). They have the names of the daemon's totals.
//
// Threads:   every member from any thread; none blocks.
// Ownership: owns the registry; every user of the registry must be destroyed first.
class Metrics {
 public:
  static Result<std::unique_ptr<Metrics>> make();

  [[nodiscard]] Registry& registry() { return registry_; }
  // Failures and refusals by their reason, which are no metrics of the registry. Lives as long as anybody has it.
  [[nodiscard]] const std::shared_ptr<OutcomeCounts>& outcomes() const { return outcomes_; }
  // How long dumps let their processes stand still. The same.
  [[nodiscard]] const std::shared_ptr<Standstills>& standstills() const { return standstills_; }
  // The progress of the running requests, summed up.
  [[nodiscard]] ProgressSums& progress() { return progress_; }

  // New columns for the recording of one request.
  [[nodiscard]] std::shared_ptr<OwnColumns> make_own_columns() const {
    return std::make_shared<OwnColumns>(own_columns_);
  }

  void criu_called(const criu::Call& call, OwnColumns* own = nullptr);
  // Counts a notification of CRIU, and sets the phase to it.
  void notified(std::string_view notification, OwnColumns* own = nullptr);
  void image_bytes_written(std::uint64_t bytes, OwnColumns* own = nullptr);
  void profiles_kept(std::uint64_t samples, std::uint64_t lost);
  void profiles_failed(std::uint64_t lost);
  void profiles_removed(std::uint64_t minutes);
  void profiles_pulled(const profiles::PullCounts& counts);
  void spans_exported(std::uint64_t sent, std::uint64_t dropped);
  void dump_ended(RequestResult result, OwnColumns* own = nullptr);
  void restore_ended(RequestResult result, OwnColumns* own = nullptr);
  void add(const criu::DumpStats& stats, OwnColumns* own = nullptr);
  void add(const criu::RestoreStats& stats, OwnColumns* own = nullptr);
  void set_processes_managed(std::uint64_t count);
  void set_profiles_not_kept(bool not_kept);
  void set_unconfirmed(std::uint64_t dumps, std::uint64_t held_processes);
  // To be called at the start and end of each dump and restore. If several run at once, the
  // daemon's phase is that of the request that changed its phase last. It is idle when all have
  // ended.
  void request_began(OwnColumns* own = nullptr);
  void request_ended(OwnColumns* own = nullptr);
  // Sets the progress of one request in its own columns. The daemon-wide sums are in progress().
  static void progressed(std::uint64_t done_bytes, std::uint64_t remaining_bytes,
                         std::uint64_t done_pages, OwnColumns& own);

 private:
  // The counters without fields, as indexes into kTotals of metrics.cc. Those that are not part of a
  // request's own columns come last.
  enum class Total : std::uint8_t {
    image_written,
    otlp_spans_sent,
    otlp_spans_dropped,
    profile_samples,
    profile_samples_lost,
    profile_failures,
    profiles_removed,
    profile_pulls,
    profile_pulls_failed,
    profile_pulls_timed_out,
    profile_pulled_bytes,
  };
  // The counters of one family, and the index of the first of them in a request's own columns.
  struct Family {
    std::vector<Counter> counters;
    std::optional<std::size_t> own{};  // nothing: they are no columns of a request

    void add(std::size_t which, std::uint64_t n, OwnColumns* into) {
      counters[which].add(n);
      if (into != nullptr && own) into->add(*own + which, n);
    }
  };

  Metrics() = default;
  Result<void> register_families();
  Result<void> register_totals();
  Result<void> register_gauges();
  Result<void> register_progress();
  // `of_requests`: the counters are columns of a request's own recording, too.
  Result<void> make_family(Metric metric, bool of_requests, Family* family);
  void add(Total total, std::uint64_t n, OwnColumns* own) {
    totals_.add(static_cast<std::size_t>(total), n, own);
  }
  void add(const std::vector<criu::StatsFigure>& figures, OwnColumns* own);
  void move_phase(std::uint64_t phase, OwnColumns* own);

  Registry registry_;
  std::vector<Column> own_columns_;
  Family criu_figures_;   // in the order of criu_figure_names_
  Family totals_;         // in the order of Total
  Family criu_calls_;     // by kind, then ok and error
  Family criu_time_us_;   // by kind
  Family dumps_;          // in the order of kRequestResults
  Family restores_;       // in the order of kRequestResults
  Family notifications_;  // in the order of kNotifications
  std::vector<std::string_view> criu_figure_names_;
  std::atomic<std::uint64_t> phase_{kPhaseIdle};
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> processes_{0};
  std::atomic<std::uint64_t> unconfirmed_{0};
  std::atomic<std::uint64_t> held_{0};
  std::atomic<std::uint64_t> profiles_not_kept_{0};
  ProgressSums progress_;
  std::shared_ptr<OutcomeCounts> outcomes_ = std::make_shared<OutcomeCounts>();
  std::shared_ptr<Standstills> standstills_ = std::make_shared<Standstills>();
};

}  // namespace kymo::daemon
