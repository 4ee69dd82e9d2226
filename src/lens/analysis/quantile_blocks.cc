#include "lens/analysis/quantile_blocks.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace kymo::analysis {
namespace {

// A piece has at least this many values above its quantile.
constexpr double kValuesAbove = 10;

}  // namespace

std::size_t values_needed(double share) {
  return static_cast<std::size_t>(std::llround(kValuesAbove / (1 - share)));
}

std::vector<HistogramBlocks> histogram_blocks(const std::vector<ColumnSummary>& columns,
                                              const std::vector<ColumnBlocks>& blocks) {
  std::vector<ColumnInfo> infos;
  for (const ColumnSummary& column : columns) infos.push_back(column.info);
  std::vector<HistogramBlocks> all;
  for (HistogramColumns& found : find_histograms(infos)) {
    HistogramBlocks histogram{std::move(found), {}, {}, 0, {}};
    histogram.sum = blocks[histogram.columns.sum].growth;
    histogram.sums = blocks[histogram.columns.sum].growths;
    for (const std::size_t bucket : histogram.columns.buckets) {
      const ColumnBlocks& counts = blocks[bucket];
      histogram.all.push_back(static_cast<std::uint64_t>(counts.growth));
      histogram.blocks.resize(counts.growths.size());
      for (std::size_t i = 0; i < counts.growths.size(); ++i) {
        histogram.blocks[i].push_back(static_cast<std::uint64_t>(counts.growths[i]));
      }
    }
    all.push_back(std::move(histogram));
  }
  return all;
}

std::uint64_t HistogramBlocks::values() const {
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

std::vector<double> means_of_pieces(const HistogramBlocks& histogram) {
  std::vector<double> means;
  double sum = 0;
  std::uint64_t values = 0;
  for (std::size_t i = 0; i < histogram.blocks.size(); ++i) {
    const std::vector<std::uint64_t>& block = histogram.blocks[i];
    values = std::accumulate(block.begin(), block.end(), values);
    sum += histogram.sums[i];
    if (values < kValuesAMean) continue;
    means.push_back(sum / static_cast<double>(values));
    sum = 0;
    values = 0;
  }
  return means;
}

std::vector<double> quantiles_of_pieces(const HistogramBlocks& histogram, double share) {
  const std::size_t needed = values_needed(share);
  std::vector<double> quantiles;
  std::vector<std::uint64_t> piece(histogram.columns.buckets.size());
  std::uint64_t values = 0;
  for (const std::vector<std::uint64_t>& block : histogram.blocks) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      piece[i] += block[i];
      values += block[i];
    }
    if (values < needed) continue;
    quantiles.push_back(quantile(histogram.columns.bounds, piece, share));
    piece.assign(piece.size(), 0);
    values = 0;
  }
  return quantiles;
}

}  // namespace kymo::analysis
