#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lens/analysis/block_values.h"
#include "lens/analysis/rank_test.h"
#include "lens/analysis/summary.h"

namespace kymo::analysis {

// How two recordings, or two sets of them, are compared. docs/diff.md describes the method.
struct DiffOptions {
  // The mark at which the recordings are aligned. If empty: the first mark that all have, or else
  // their first rows.
  std::string align = {};
  // Begin and end of the comparison, in seconds from there. By default it begins there. It ends
  // with the phase that `align` names, with the last mark that all have, or with the last row.
  std::optional<double> from_s = std::nullopt;
  std::optional<double> to_s = std::nullopt;
  // Ignore changes up to this share. The default is 5 % between two recordings, which do not show
  // how much runs differ from each other, and 0 between sets, which do.
  std::optional<double> margin = std::nullopt;
  // Compare only these metrics, columns, phases ("phase: NAME"), quantiles of histograms
  // ("wait_us p99"), means ("wait_us mean"), totals of counters ("tree_cpu_ns total") and the "length". If
  // empty: all, but of a histogram only its mean, its quantiles and its count, and totals only if
  // totals_are_needed().
  std::vector<std::string> metrics = {};
};

// A recording, and which part of it is compared.
struct DiffRun {
  Summary summary;
  std::uint64_t origin_ns = 0;  // where it is aligned
  TimeWindow window;
};

// The comparison of one metric, of the duration of one phase, or of the length of the recordings.
struct MetricDiff {
  enum class Verdict : std::uint8_t {
    changed,    // beyond noise
    not_told,   // no test is possible: `reason` says why
    one_sided,  // only one side has it
    none,       // no change beyond noise
    the_same    // one constant value in all runs. `reason`: why that is too little to tell
  };

  std::string name;
  bool phase = false;     // the duration of a phase
  bool quantile = false;  // of a histogram
  std::string histogram;  // of which it is the mean or a quantile; empty: none
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  bool length = false;  // of what is compared of the recordings
  bool total = false;   // how much a counter grew, beside its rate
  bool others = false;  // other programs change it, too, and it was not asked for by name
  bool events = false;  // a counter that grows in only a few rows: its growth is compared
  // The rate per second (or the growth) of a counter, the mean of a gauge, the nanoseconds of a
  // phase, a quantile. With several runs, it is their median.
  std::optional<double> before;
  std::optional<double> after;
  std::size_t samples_before = 0;  // number of independent values in the test: blocks or runs
  std::size_t samples_after = 0;
  // The length of a block; 0 if each run is one value, or if a block has a number of values of a
  // histogram instead.
  std::uint64_t block_ns = 0;
  // What the interval of a pair of recordings is widened by, as a share: they do not show how far runs differ.
  double between_runs = 0;
  std::array<std::vector<double>, 2> runs;  // the values of a test between sets
  Shift shift;
  double p = 1;
  double adjusted_p = 1;
  Verdict verdict = Verdict::not_told;
  std::string reason;
  bool tells_nothing = false;  // there was no test because it moves too seldom, or not by itself
  bool dependent = false;      // too few independent values: each depends on those before it
  // Of a quantile: whether it lies above the highest bound of its histogram in the median run of a
  // side. Then `before` or `after` is only the lowest value that it can have.
  std::array<bool, 2> above_last{};
  std::array<bool, 2>
      in_first{};  // the same below the lowest bound: it is the highest value that it can have
  bool unbounded = false;   // it lies above the highest bound in any run: the verdict is not_told
  bool one_bucket = false;  // it lies in the same bucket in all runs
  bool named = false;       // it was asked for by name
  bool not_known_yet = false;  // there was no test because a recording is unfinished

  // The shift as a share of `before`. If there was no test, the difference takes the place of the
  // shift. Nothing if a side is missing, if `before` is 0 and the change is not, or if `unbounded`.
  [[nodiscard]] std::optional<double> share() const;

  struct Interval {
    double low = 0;
    double high = 0;
  };
  // Of a quantile: the shifts that its buckets leave open, because they do not tell where in them the
  // values are. No interval is narrower.
  std::optional<Interval> in_buckets;

  // The changes, as shares of `before`, that the values do not rule out. Nothing if there was no test
  // (0 to 0 if nothing moved in enough values), or if `before` is 0 and `after` may be, too.
  [[nodiscard]] std::optional<Interval> interval() const;
  // The same if each side had so many runs that lie as these do. Nothing between two recordings.
  [[nodiscard]] std::optional<Interval> interval_at(std::size_t runs) const;
  // The same with any number of runs: what its buckets leave open. Nothing if nobody knows.
  [[nodiscard]] std::optional<Interval> least_interval() const;

 private:
  [[nodiscard]] std::optional<Interval> as_shares(const Interval& of_shifts) const;
};

struct RecordingDiff {
  std::vector<DiffRun> before;
  std::vector<DiffRun> after;
  std::string aligned_at;       // a mark; empty: the first rows
  std::string until;            // a mark; empty: the last rows, or as `align` or `to_s` says
  bool unfinished = false;      // a recording is unfinished; the first notes say which
  bool by_runs = false;         // a side has several runs: each run is one value
  bool lengths_differ = false;  // of what is compared, and nobody chose them
  double margin = 0;
  std::size_t tested = 0;         // number of metrics in Holm's correction
  std::size_t tested_totals = 0;  // number of totals, which have a correction of their own
  std::size_t runs_needed = 0;    // runs on each side that are enough to test all common metrics
  // By verdict, changed ones first; then the length, the totals that changed, and the largest change.
  std::vector<MetricDiff> metrics;
  std::vector<std::string> notes;
  // Why some of the recordings do not hold all of what happened: they were cut, lost rows, or a gauge failed.
  // A comparison with them says nothing about the programs.
  std::vector<std::string> broken;
};

inline constexpr double kDiffAllowedP = 0.05;
// With fewer runs on a side, no test is possible, even of a single metric.
inline constexpr std::size_t kMinRuns = 4;

// Compares recordings.
//
// Errors: those of summarize() and read_blocks().
//         invalid_argument if there is no such mark or metric, if a recording has fewer than two
//         rows, or none between `from_s` and `to_s`. It names the recording or the metric.
Result<RecordingDiff> diff_recordings(const std::vector<std::string>& before,
                                      const std::vector<std::string>& after,
                                      const DiffOptions& options);

const char* to_string(MetricDiff::Verdict verdict);

}  // namespace kymo::analysis
