#pragma once

#include <array>
#include <cstddef>

#include "kymo/metric.h"

namespace kymo {

// The names of the units in recordings, the API and JSON, in the order of the enumeration.
inline constexpr std::array<const char*, 5> kUnitNames = {"count", "pages", "bytes", "nanoseconds",
                                                          "microseconds"};

constexpr const char* unit_name(Unit unit) {
  return kUnitNames[static_cast<std::size_t>(unit)];
}

}  // namespace kymo
