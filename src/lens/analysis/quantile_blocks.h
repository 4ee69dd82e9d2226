#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lens/analysis/block_values.h"
#include "lens/analysis/histograms.h"
#include "lens/analysis/summary.h"

namespace kymo::analysis {

// The quantiles of histograms that are compared.
struct QuantileName {
  double share;
  const char* name;
};
inline constexpr std::array<QuantileName, 3> kComparedQuantiles = {
    {{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}}};

// With fewer values, a quantile says more about how many values there were than about them.
std::size_t values_needed(double share);

// The values of one histogram in one recording, by blocks of time.
struct HistogramBlocks {
  HistogramColumns columns;
  std::vector<std::uint64_t> all;                  // in the whole window, for each bucket
  std::vector<std::vector<std::uint64_t>> blocks;  // for each block: for each bucket
  double sum = 0;                                  // of all values in the whole window
  std::vector<double> sums;                        // of the values in each block

  [[nodiscard]] std::uint64_t values() const;  // in the whole window
};

// The histograms of a recording. `blocks` are those of all its columns.
std::vector<HistogramBlocks> histogram_blocks(const std::vector<ColumnSummary>& columns,
                                              const std::vector<ColumnBlocks>& blocks);

// The quantile in consecutive pieces of time. Blocks are joined until a piece has as many values as
// the quantile needs, so the pieces of two recordings have about as many values as each other, even
// if one of them recorded more. Blocks that are left at the end are not used.
std::vector<double> quantiles_of_pieces(const HistogramBlocks& histogram, double share);

// The mean in consecutive pieces of time, which have at least this many values.
inline constexpr std::size_t kValuesAMean = 20;
std::vector<double> means_of_pieces(const HistogramBlocks& histogram);

}  // namespace kymo::analysis
