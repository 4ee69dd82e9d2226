#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/change_point.h"

namespace kymo::report {

// A dump or restore of a job, as its history needs it.
struct HistoryRun {
  std::string checkpoint;  // its id; the checkpoint itself may be gone
  std::int64_t created_unix_ns = 0;
  std::string error;  // empty: it succeeded
  std::uint64_t duration_ns = 0;
  std::uint64_t image_bytes = 0;
  std::optional<std::uint64_t> frozen_ns;
  std::string conditions;  // what it was told
  std::string warmth;      // "warm", or "cold: " and why; empty: not known
  std::vector<std::pair<std::string, std::uint64_t>> phases;  // nanoseconds by name

  [[nodiscard]] bool cold() const { return warmth.rfind("cold", 0) == 0; }
};

enum class HistoryMetric : std::uint8_t { duration, frozen, bytes, throughput };
inline constexpr HistoryMetric kHistoryMetrics[] = {HistoryMetric::duration, HistoryMetric::frozen,
                                                    HistoryMetric::bytes,
                                                    HistoryMetric::throughput};
std::string_view name_of(HistoryMetric metric);
// In nanoseconds, bytes or bytes a second; none where the run does not have it.
std::optional<double> value_of(const HistoryRun& run, HistoryMetric metric);

struct HistoryOptions {
  HistoryMetric metric = HistoryMetric::duration;
  // How much worse the newest may be, as a share of the median before; none: not asked.
  std::optional<double> allowed_regression;
  std::size_t newest = 1;  // so many runs are the newest; their median counts
};

// Where a metric lies, over the runs that are compared.
struct HistoryLevel {
  HistoryMetric metric = HistoryMetric::duration;
  std::size_t runs = 0;  // that have it
  double median = 0;
  double low = 0;  // a quarter of the runs lie below it, and a quarter above `high`
  double high = 0;
  double least = 0;
  double most = 0;
};

// What a metric or phase was before and after a change: medians.
struct HistoryMove {
  std::string name;
  bool phase = false;
  HistoryMetric metric = HistoryMetric::duration;  // of a phase: nanoseconds all the same
  double before = 0;
  double after = 0;
};

struct HistoryChange {
  analysis::Change found;  // its indexes are into History::compared
  double ratio = 1;        // the metric after over before, by the median shift of logarithms
  bool worse = false;
  std::vector<HistoryMove> metrics;  // all
  std::vector<HistoryMove> phases;   // what moved most first
};

struct HistoryVerdict {
  std::size_t baseline = 0;  // runs before the newest that they were held against; 0: too few
  double before = 0;         // medians of the metric
  double newest = 0;
  double worse_by = 0;  // as a share of what was; negative: better
  double noise = 0;     // how much worse noise alone may make it
  bool regression = false;
};

struct History {
  HistoryOptions options;
  std::vector<HistoryRun> runs;       // oldest first
  std::vector<std::size_t> compared;  // those that are like the newest, by index; none failed
  std::vector<HistoryLevel> levels;
  std::vector<HistoryChange> changes;
  std::optional<HistoryVerdict> verdict;
};

// What became of a job's dumps, or of its restores; docs/history.md has the method. `runs`: oldest
// first.
History analyse_history(std::vector<HistoryRun> runs, const HistoryOptions& options);

// For a person: chart, levels, changes, verdict, and at most `rows` of the newest runs.
std::string text_of(const History& history, const std::string& title, std::size_t rows);
nlohmann::json json_of(const History& history);

}  // namespace kymo::report
