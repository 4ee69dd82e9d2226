#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/summary.h"

namespace kymo::report {

// The columns that a picture shows. All columns of an axis have the same unit.
struct CurveChoice {
  std::vector<std::size_t> left;  // indices into Summary::columns, the busiest ones first
  Unit left_unit = Unit::count;
  std::vector<std::size_t> right;  // may be empty
  Unit right_unit = Unit::count;
};

// Chooses bytes on the left and pages on the right if there are such counters, or else the busiest
// counters. The recorder's own counters come last, because they always move. Returns nothing if no
// counter moved.
std::optional<CurveChoice> choose_curves(const analysis::Summary& summary);

}  // namespace kymo::report
