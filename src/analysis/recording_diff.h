#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/block_values.h"
#include "analysis/rank_test.h"
#include "analysis/summary.h"

namespace kymo::analysis {

// How two recordings, or two sets of them, are compared; docs/diff.md has the method.
struct DiffOptions {
  // The mark at which all begin; empty: the first that all have, else their first rows.
  std::string align = {};
  // Seconds from there, where the comparison begins and ends; none: with the phase that was named,
  // with the last mark that all have, or with the last row.
  std::optional<double> from_s = std::nullopt;
  std::optional<double> to_s = std::nullopt;
  // A change up to this share is none; none given: 5 % between two recordings, which cannot tell
  // how far runs differ from each other, and 0 between sets, which can.
  std::optional<double> margin = std::nullopt;
  // Only columns of these metrics or of these names, and phases as "phase: NAME"; empty: all.
  std::vector<std::string> metrics = {};
};

// A recording, and what of it is compared.
struct DiffRun {
  Summary summary;
  std::uint64_t origin_ns = 0;  // where it is aligned
  TimeWindow window;
};

// What became of a metric, or of a phase's duration.
struct MetricDiff {
  enum class Verdict : std::uint8_t {
    changed,    // beyond noise
    not_told,   // `reason` says why no test can tell
    one_sided,  // only one side has it
    none,       // no change beyond noise
    the_same    // the same value in every run, never moving
  };

  std::string name;
  bool phase = false;  // how long a phase took
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  bool events = false;  // a counter that grows in a few rows only: what it grew is compared
  // A counter's rate per second or what it grew, a gauge's mean, a phase's nanoseconds; of several
  // runs the median.
  std::optional<double> before;
  std::optional<double> after;
  std::size_t samples_before = 0;  // independent values that were tested: blocks, or runs
  std::size_t samples_after = 0;
  std::uint64_t block_ns = 0;  // how long such a block is; 0: a run is a value
  Shift shift;
  double p = 1;
  double adjusted_p = 1;
  Verdict verdict = Verdict::not_told;
  std::string reason;
  bool not_known_yet = false;  // not told because a recording is unfinished

  // The shift, or where nothing was tested the difference, as a share of what was; none of nothing.
  [[nodiscard]] std::optional<double> share() const;
};

struct RecordingDiff {
  std::vector<DiffRun> before;
  std::vector<DiffRun> after;
  std::string aligned_at;   // a mark; empty: the first rows
  std::string until;        // a mark; empty: the last rows, or what --to says
  bool unfinished = false;  // a recording is, which the first notes say
  bool by_runs = false;     // several runs on a side: each is one value
  double margin = 0;
  std::size_t tested = 0;       // metrics that Holm's correction counts
  std::size_t runs_needed = 0;  // of each side, that can tell of all metrics that both sides have
  std::vector<MetricDiff> metrics;  // what changed beyond noise first, the largest change first
  std::vector<std::string> notes;
};

inline constexpr double kDiffAllowedP = 0.05;
// Fewer runs of a side tell nothing, however few metrics are asked about.
inline constexpr std::size_t kFewestRuns = 4;

// Compares recordings. Errors: those of summarize() and read_blocks(); invalid_argument where there
// is no such mark or metric, or nothing lies between `from` and `to`, naming the recording.
Result<RecordingDiff> diff_recordings(const std::vector<std::string>& before,
                                      const std::vector<std::string>& after,
                                      const DiffOptions& options);

const char* to_string(MetricDiff::Verdict verdict);

}  // namespace kymo::analysis
