#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "criu/client.h"
#include "criu/stats.h"
#include "kymo/registry.h"
#include "kymo/result.h"
#include "sampling/own_columns.h"

namespace kymo::daemon {

// What the names of kymod's metrics begin with on /metrics.
inline constexpr const char* kPrometheusPrefix = "kymo_";

// CRIU's notifications, in about the order in which a dump, then a restore passes them.
inline constexpr std::array<std::string_view, 15> kNotifications{
    "pre-stream",  "pre-dump",          "network-lock",          "network-unlock",  "post-dump",
    "pre-restore", "setup-namespaces",  "post-setup-namespaces", "post-restore",    "pre-resume",
    "post-resume", "orphan-pts-master", "status-ready",          "query-ext-files", "other"};

// Values of the gauge `phase`: idle, a request before CRIU's first notification, then 2 plus the
// index in kNotifications of the one that CRIU passed last.
inline constexpr std::uint64_t kPhaseIdle = 0;
inline constexpr std::uint64_t kPhaseRequest = 1;
std::uint64_t phase_of(std::string_view notification);

// How a dump or restore ended. `refused`: nothing was begun, since the request was wrong or could
// not be fulfilled as things stood; the daemon and CRIU did nothing wrong.
enum class RequestResult : std::uint8_t { ok, error, refused, cancelled };
inline constexpr std::array<std::string_view, 4> kRequestResults{"ok", "error", "refused",
                                                                 "cancelled"};
// `begun`: whether its runtime was called.
RequestResult result_of(const Result<void>& outcome, bool begun);

// The sums over all running requests, for the gauges that recordings have.
struct ProgressSums {
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<std::uint64_t> bytes_remaining{0};
  std::atomic<std::uint64_t> pages_done{0};
};

// Everything that the daemon counts (docs/metrics.md lists it), and the registry that holds it.
// What a request did is counted in the columns of its own recording as well, where `own` is given:
// those of make_own_columns(), with the names that the daemon's totals have.
//
// Threads:   every member from any thread; none blocks.
// Ownership: owns the registry; whoever samples it must be gone first.
class Metrics {
 public:
  static Result<std::unique_ptr<Metrics>> make();

  [[nodiscard]] Registry& registry() { return registry_; }
  // What requests say of how far they are.
  [[nodiscard]] ProgressSums& progress() { return progress_; }

  // The columns that a request's recording has of its own: what RequestMetrics counts.
  [[nodiscard]] std::shared_ptr<OwnColumns> make_own_columns() const {
    return std::make_shared<OwnColumns>(own_names_);
  }

  void criu_called(const criu::Call& call, OwnColumns* own = nullptr);
  // CRIU passed this point: counts it and moves the phase.
  void notified(std::string_view notification, OwnColumns* own = nullptr);
  void image_bytes_written(std::uint64_t bytes, OwnColumns* own = nullptr);
  void spans_exported(std::uint64_t sent, std::uint64_t dropped);
  void dump_ended(RequestResult result, OwnColumns* own = nullptr);
  void restore_ended(RequestResult result, OwnColumns* own = nullptr);
  void add(const criu::DumpStats& stats, OwnColumns* own = nullptr);
  void add(const criu::RestoreStats& stats, OwnColumns* own = nullptr);
  void set_processes_managed(std::uint64_t count);
  // Brackets each dump and restore. With several at once the phase is that of the one that moved
  // last; it is idle again once all have ended.
  void request_began(OwnColumns* own = nullptr);
  void request_ended(OwnColumns* own = nullptr);
  // How far a request is; of the totals, progress() has it already.
  static void progressed(std::uint64_t done_bytes, std::uint64_t remaining_bytes,
                         std::uint64_t done_pages, OwnColumns& own);

 private:
  // The counters without fields, by their place in the table of metrics.cc. Those that no request
  // counts come last.
  enum class Total : std::uint8_t {
    pages_scanned,
    pages_skipped_parent,
    pages_written,
    pages_restored,
    freezing_time,
    frozen_time,
    memdump_time,
    memwrite_time,
    forking_time,
    restore_time,
    image_written,
    otlp_spans_sent,
    otlp_spans_dropped,
  };
  // Counters of one family, and where a request's own columns of them begin.
  struct Family {
    std::vector<Counter> counters;
    std::size_t own = 0;

    void add(std::size_t which, std::uint64_t n, OwnColumns* into) {
      counters[which].add(n);
      if (into != nullptr) into->add(own + which, n);
    }
  };

  Metrics() = default;
  Result<void> register_families();
  Result<void> register_totals();
  Result<void> register_gauges();
  Result<void> register_progress();
  Result<void> make_family(Metric metric, Family* family);
  void add(Total total, std::uint64_t n, OwnColumns* own) {
    totals_.add(static_cast<std::size_t>(total), n, own);
  }
  void move_phase(std::uint64_t phase, OwnColumns* own);

  Registry registry_;
  std::vector<std::string> own_names_;
  Family totals_;         // as Total
  Family criu_calls_;     // by kind, then ok and error
  Family criu_time_us_;   // by kind
  Family dumps_;          // as kRequestResults
  Family restores_;       // as kRequestResults
  Family notifications_;  // as kNotifications
  std::atomic<std::uint64_t> phase_{kPhaseIdle};
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> processes_{0};
  ProgressSums progress_;
};

}  // namespace kymo::daemon
