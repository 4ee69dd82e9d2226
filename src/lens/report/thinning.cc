#include "lens/report/thinning.h"

#include <algorithm>
#include <cstddef>

namespace kymo::report {

void Thinning::add(std::span<const std::uint64_t> times, std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  if (!rates_) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    keep(static_cast<double>(*low));
    keep(static_cast<double>(*high));
    add(times.back(), values.back());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) add(times[i], values[i]);
}

std::optional<Thinning::Extremes> Thinning::end_span() {
  if (!any_) return std::nullopt;
  any_ = false;
  return extremes_;
}

}  // namespace kymo::report
