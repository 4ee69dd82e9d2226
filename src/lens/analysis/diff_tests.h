#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/histograms.h"
#include "lens/analysis/recording_diff.h"

namespace kymo::analysis {

// Events that are rarer than this have no noise that a change can be compared with.
inline constexpr std::size_t kMinMoves = 5;
// The default margin between two recordings.
inline constexpr double kPairMargin = 0.05;
inline constexpr const char* kOneRunEach = "one run on each side";

// The values of one metric, or of one phase's duration, on both sides.
struct DiffValues {
  bool phase = false;
  double quantile = 0;             // of a histogram; 0: it is none
  std::string histogram;           // of which it is the mean or a quantile; empty: none
  std::size_t values_a_block = 0;  // of a histogram: in each of `blocks`, at least
  std::array<std::vector<BucketRange>, 2> buckets;  // in which a quantile lies, one for each run
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  std::array<std::vector<double>, 2> means;    // one for each run
  std::array<std::vector<double>, 2> blocks;   // of the last run, used if it is the only one
  std::array<std::vector<double>, 2> growths;  // of a counter, one for each run
  std::uint64_t most_rises = 0;                // rows in which it grew, maximum over all runs
  bool not_known_yet = false;                  // an unfinished run may have ended before it grew
  bool total_named = false;                    // its total was asked for
  bool only_total = false;                     // and nothing else of it
};

// Test one metric, and set what the test says in `diff`, whose `before` and `after` are set. They set a
// reason if no test is possible. p is not corrected yet.
//
// Of two recordings: by the blocks of time of each.
void test_blocks(const DiffValues& values, std::uint64_t block_ns, double margin, MetricDiff& diff);
// Of sets: each run is one value.
void test_runs(const std::vector<double>& before, const std::vector<double>& after, double margin,
               MetricDiff& diff);

// Corrects the p of all metrics that were tested (verdict `none`), and sets which of them have changed.
// `by_runs`: those that too few runs can tell nothing of become `not_told`. Returns how many were tested.
std::size_t correct(std::vector<MetricDiff>& metrics, bool by_runs);

// The number of runs of each side that is enough to test so many metrics.
std::size_t runs_needed(std::size_t tests);

}  // namespace kymo::analysis
