#pragma once

#include <cstdint>

namespace kymo {

// The growth per second of what grew by `growth` in `passed_ns`. It is 0 if no time passed. All
// rates are computed here.
constexpr double rate_per_second(double growth, std::uint64_t passed_ns) {
  constexpr double kNanos = 1e9;
  return passed_ns == 0 ? 0 : growth * kNanos / static_cast<double>(passed_ns);
}

// The growth of a counter from one value to a later one. It is negative if the counter fell.
constexpr double growth_between(std::uint64_t before, std::uint64_t after) {
  return after >= before ? static_cast<double>(after - before)
                         : -static_cast<double>(before - after);
}

}  // namespace kymo
