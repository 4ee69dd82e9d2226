#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lens/analysis/change_point.h"

namespace kymo::report {

// One dump or restore in the history of a job.
struct HistoryRun {
  std::string checkpoint;  // its id; the checkpoint may have been deleted
  std::string directory;  // of the checkpoint; empty if it does not exist any more, or is not known
  std::int64_t created_unix_ns = 0;
  std::string error;     // empty: it succeeded
  std::string failure;   // the id of its reason (docs/errors.md), or empty
  bool refused = false;  // nothing was begun
  std::uint64_t duration_ns = 0;
  std::uint64_t image_bytes = 0;
  std::optional<std::uint64_t> stood_still_ns;  // of a dump
  std::optional<std::uint64_t> away_ns;         // of a restore: since the dump
  std::string conditions;  // the options of the request that affect its duration
  std::string warmth;      // "warm", or "cold: " and the reason; empty if unknown
  std::vector<std::pair<std::string, std::uint64_t>> phases;  // nanoseconds by name

  [[nodiscard]] bool cold() const { return warmth.rfind("cold", 0) == 0; }
};

// Whether this is no phase, but what CRIU, kymod or the target did in that time: "CRIU: waited for the disk".
bool is_state(std::string_view name);

enum class HistoryMetric : std::uint8_t { duration, frozen, bytes, throughput };
inline constexpr HistoryMetric kHistoryMetrics[] = {HistoryMetric::duration, HistoryMetric::frozen,
                                                    HistoryMetric::bytes,
                                                    HistoryMetric::throughput};
std::string_view name_of(HistoryMetric metric);
// In nanoseconds, bytes or bytes per second. Nothing if the run does not have this metric.
std::optional<double> value_of(const HistoryRun& run, HistoryMetric metric);

struct HistoryOptions {
  HistoryMetric metric = HistoryMetric::duration;
  // By which share of the median before the newest runs may be worse. If empty, there is no
  // verdict.
  std::optional<double> allowed_regression;
  std::size_t newest = 1;  // the number of runs that count as the newest; their median is used
};

// The distribution of a metric over the runs that are compared.
struct HistoryLevel {
  HistoryMetric metric = HistoryMetric::duration;
  std::size_t runs = 0;  // the number of runs that have the metric
  double median = 0;
  double low = 0;   // a quarter of the runs is below it
  double high = 0;  // a quarter of the runs is above it
  double p95 = 0;   // one run of twenty is above it
  double p99 = 0;
  double least = 0;
  double most = 0;
};

// So many phases of a change are shown: those that moved most.
inline constexpr std::size_t kMovedPhases = 3;

// The medians of a metric or phase before and after a change.
struct HistoryMove {
  std::string name;
  bool phase = false;
  HistoryMetric metric = HistoryMetric::duration;  // a phase is in nanoseconds, like a duration
  double before = 0;
  double after = 0;
  // Where it changed itself, if that is another run of History::compared than that of the change.
  std::optional<std::size_t> at{};
};

struct HistoryChange {
  analysis::Change found;  // its indexes are into History::compared
  double ratio = 1;        // the metric's median after / before
  bool worse = false;
  std::vector<HistoryMove> metrics;  // every metric that the runs have
  std::vector<HistoryMove> phases;   // the largest change first
  std::vector<HistoryMove> states;   // what CRIU, kymod and the target did in this time, likewise
  std::vector<std::string>
      because;  // which phase and which state made most of the change, in words
};

struct HistoryVerdict {
  std::size_t baseline = 0;  // number of earlier runs in the comparison; 0 if there are too few
  // The baseline begins with this run of History::compared, because the level changed there; empty:
  // no change bounds it.
  std::optional<std::size_t> since;
  double before = 0;    // median of the metric over the baseline
  double newest = 0;    // median of the metric over the newest runs
  double worse_by = 0;  // as a share of the baseline; negative if it is better
  double noise = 0;     // how much worse noise alone may make it
  bool regression = false;
  // It is not worse by more than noise, and noise alone may make it worse by more than is allowed.
  bool too_noisy = false;
};

struct History {
  HistoryOptions options;
  std::vector<HistoryRun> runs;       // oldest first
  std::vector<std::size_t> compared;  // indexes of the runs that are comparable to the newest
  bool newest_left_out =
      false;  // it was cold, there are too few cold ones, and warm ones are compared
  std::vector<HistoryLevel> levels;
  std::vector<HistoryChange> changes;
  std::optional<HistoryVerdict> verdict;
};

// Analyses the history of a job's dumps, or of its restores. `runs` are ordered oldest first.
// docs/diff.md describes the method.
History analyse_history(std::vector<HistoryRun> runs, const HistoryOptions& options);

// Text for a person: chart, levels, changes, verdict, and at most `rows` of the newest runs.
std::string text_of(const History& history, const std::string& title, std::size_t rows);
nlohmann::json json_of(const History& history);

}  // namespace kymo::report
