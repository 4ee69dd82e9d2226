#include "lens/analysis/rate_profile.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/rate.h"

namespace kymo::analysis {
namespace {

// The step of a rate is its exponent and the first 6 bits of its mantissa. Rates are clamped to
// 2^-40 to 2^100. (One event in half a day is 2^-16.)
constexpr unsigned kDroppedBits = 52 - 6;
const std::uint64_t kMinStep = std::bit_cast<std::uint64_t>(0x1p-40) >> kDroppedBits;
const std::uint64_t kMaxStep = std::bit_cast<std::uint64_t>(0x1p100) >> kDroppedBits;

std::uint64_t step_of(double rate) {
  if (rate <= 0) return 0;
  const std::uint64_t step = std::bit_cast<std::uint64_t>(rate) >> kDroppedBits;
  return std::clamp(step, kMinStep + 1, kMaxStep) - kMinStep;
}

// The middle of a step.
double rate_of(std::uint64_t step) {
  if (step == 0) return 0;
  const double low = std::bit_cast<double>((step + kMinStep) << kDroppedBits);
  const double high = std::bit_cast<double>((step + kMinStep + 1) << kDroppedBits);
  return (low + high) / 2;
}

// The index, from 0, of the quantile `q` in sorted values: a share `q` of them is at or below it.
std::uint64_t rank_of(double q, std::uint64_t values) {
  const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(values)));
  return rank == 0 ? 0 : rank - 1;
}

}  // namespace

double RateProfile::Cell::rate() const {
  return rate_per_second(growth, end_ns - begin_ns);
}

void RateProfile::add(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t growth) {
  const Cell window{begin_ns, end_ns, static_cast<double>(growth)};
  ++windows_;
  if (in_last_ != 0 && in_last_ < windows_a_cell_) {
    cells_.back().end_ns = end_ns;
    cells_.back().growth += window.growth;
    ++in_last_;
  } else {
    if (cells_.size() == kMaxProfileCells) merge_pairs_of_cells();
    cells_.push_back(window);
    in_last_ = 1;
  }
  if (!counts_.empty()) count(window.rate());
}

void RateProfile::count(double rate) {
  highest_ = std::max(highest_, rate);
  ++counts_[step_of(rate)];
}

void RateProfile::merge_pairs_of_cells() {
  if (counts_.empty()) {
    counts_.resize(kMaxStep - kMinStep + 1);
    for (const Cell& cell : cells_) count(cell.rate());
  }
  for (std::size_t i = 0; i < cells_.size() / 2; ++i) {
    const Cell& second = cells_[2 * i + 1];
    Cell merged = cells_[2 * i];
    merged.end_ns = second.end_ns;
    merged.growth += second.growth;
    cells_[i] = merged;
  }
  cells_.resize(cells_.size() / 2);
  windows_a_cell_ *= 2;
}

RatePercentiles RateProfile::percentiles() const {
  RatePercentiles found;
  found.windows = windows_;
  found.exact = counts_.empty();
  if (windows_ == 0) return found;
  std::vector<double> rates;
  if (found.exact) {
    for (const Cell& cell : cells_) rates.push_back(cell.rate());
    std::sort(rates.begin(), rates.end());
  }
  const auto at = [&](double q) {
    const std::uint64_t rank = rank_of(q, windows_);
    if (found.exact) return rates[rank];
    std::uint64_t below = 0;
    std::uint64_t step = 0;
    while (below + counts_[step] <= rank) below += counts_[step++];
    return std::min(rate_of(step), highest_);
  };
  found.p50 = at(0.5);
  found.p90 = at(0.9);
  found.p99 = at(0.99);
  return found;
}

BusyStretch RateProfile::busiest() const {
  const auto slower = [](const Cell& a, const Cell& b) { return a.rate() < b.rate(); };
  const auto fastest = std::max_element(cells_.begin(), cells_.end(), slower);
  if (fastest == cells_.end() || fastest->growth == 0) return {};
  const double half = fastest->rate() / 2;
  auto begin = fastest;
  auto end = fastest + 1;
  while (begin != cells_.begin() && (begin - 1)->rate() >= half) --begin;
  while (end != cells_.end() && end->rate() >= half) ++end;
  BusyStretch stretch{begin->begin_ns, (end - 1)->end_ns, 0};
  for (auto cell = begin; cell != end; ++cell) stretch.growth += cell->growth;
  return stretch;
}

}  // namespace kymo::analysis
