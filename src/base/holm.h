#pragma once

#include <span>
#include <vector>

namespace kymo {

// S. Holm's correction for many tests at once. If nothing that is tested differs at all, the
// probability that any adjusted p is below 0.05 is at most 0.05. The result has the order of `p`.
std::vector<double> holm_adjusted(std::span<const double> p);

}  // namespace kymo
