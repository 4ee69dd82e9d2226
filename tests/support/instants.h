#pragma once

#include <algorithm>

#include "base/sanitizers.h"

namespace kymo::test {

// For tests that end something at each instant of its life, until it is done before that: the
// instants are `step` milliseconds apart, or a sixth of the time so far if that is more. So the test
// takes twice as long, not four times, on a machine half as fast. With a sanitizer, which looks for
// other mistakes, it is a half. None is later than kLastInstantMs.
inline constexpr int kLastInstantMs = 60'000;
inline int next_instant(int ms, int step) {
  return ms + std::max(step, ms / (KYMO_SANITIZER ? 2 : 6));
}

}  // namespace kymo::test
